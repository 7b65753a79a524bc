#!/usr/bin/env bash
# Runs make targets in order and prints the seconds that each took. Stops at the first failure.
#
# usage: stages.sh TARGET...
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
report=()
for stage in "$@"; do
  echo "== $stage"
  began=$SECONDS
  if ! make --no-print-directory "$stage"; then
    echo "== $stage FAILED after $((SECONDS - began)) s" >&2
    exit 1
  fi
  report+=("$(printf '%-12s %5d s' "$stage" $((SECONDS - began)))")
done
printf '%s\n' "== seconds per stage" "${report[@]}" "$(printf '%-12s %5d s' all "$SECONDS")"
