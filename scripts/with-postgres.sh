#!/usr/bin/env bash
# Runs a command beside a Postgres server for tests, which each create a database of their own there (tests/postgres). Stops
# the server and removes it when the command has ended, however that ends.
# Without this script such a test starts a server of its own, which takes longer.
#
# usage: with-postgres.sh COMMAND...
set -euo pipefail

PROGRAMS=/usr/lib/postgresql/15/bin
# Tests that run at once have several programs each, and those several connections.
MAX_CONNECTIONS=500

die() { echo "with-postgres: error: $*" >&2; exit 1; }

# Runs a program of Postgres, which refuses to run as root.
postgres() {
  local program=$PROGRAMS/$1
  shift
  [[ -x $program ]] || die "$program is missing: run make setup-test"
  if [[ $EUID -eq 0 ]]; then
    setpriv --reuid nobody --regid nogroup --clear-groups -- "$program" "$@"
  else
    "$program" "$@"
  fi
}

failed() {
  cat "$folder/log" >&2
  die "$1"
}

# pg_ctl makes the server a session of its own, so that a Ctrl-C reaches the command alone.
start() {
  (cd "$folder" && postgres initdb --no-sync --username=sluice --encoding=UTF8 --locale=C.UTF-8 --auth=trust \
    --pgdata=data) >"$folder/log" 2>&1 || failed "initdb failed"
  (cd "$folder" && postgres pg_ctl -D data -l server.log -w start \
    -o "-k $folder -c listen_addresses= -c fsync=off -c full_page_writes=off -c max_connections=$MAX_CONNECTIONS") \
    >"$folder/log" 2>&1 || failed "Postgres did not start"
}

stop() {
  if [[ -e $folder/data/postmaster.pid ]]; then
    (cd "$folder" && postgres pg_ctl -D data -m immediate -w stop) >"$folder/log" 2>&1 || cat "$folder/log" >&2
  fi
  rm -rf "$folder"
}

[[ $# -gt 0 ]] || { echo "usage: scripts/with-postgres.sh COMMAND..." >&2; exit 64; }
folder=$(mktemp -d)
trap stop EXIT
[[ $EUID -ne 0 ]] || chown nobody:nogroup "$folder"
start
TEST_POSTGRES=$folder "$@"
