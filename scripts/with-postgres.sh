#!/usr/bin/env bash
# Runs a command beside a Postgres server for tests, which each create a database of their own there (tests/postgres). Stops
# the server and removes it when the command has ended, however that ends.
# Without this script such a test starts a server of its own, which takes longer.
#
# usage: with-postgres.sh COMMAND...
set -euo pipefail

# Tests that run at once have several programs each, and those several connections.
MAX_CONNECTIONS=500
# shellcheck source=scripts/postgres.sh
source "$(dirname "${BASH_SOURCE[0]}")/postgres.sh"

die() { echo "with-postgres: error: $*" >&2; exit 1; }

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
