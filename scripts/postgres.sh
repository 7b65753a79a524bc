# shellcheck shell=bash
# Runs the programs of Postgres. To be sourced; the caller defines `die`.

POSTGRES=/usr/lib/postgresql/15/bin

# postgres PROGRAM ARGUMENT...  Becomes a program of Postgres, which refuses to run as root. Use a subshell to go on.
postgres() {
  local program=$POSTGRES/$1
  shift
  [[ -x $program ]] || die "$program is missing: run make setup-test"
  if [[ $EUID -eq 0 ]]; then
    exec setpriv --reuid nobody --regid nogroup --clear-groups -- "$program" "$@"
  fi
  exec "$program" "$@"
}
