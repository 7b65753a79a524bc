#!/usr/bin/env bash
# Runs tests again and again beside a load that keeps all processors busy, to find lost races. Fails if a run of a test fails.
#
# usage: stress.sh TEST...      names or parts of names of tests; COUNT=30 is how often each runs
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $# -gt 0 ]] || { echo 'usage: make stress TESTS="name ..."' >&2; exit 64; }

filter=
for test in "$@"; do filter+="${filter:+ + }test($test)"; done
loads=()
trap 'kill "${loads[@]}" 2>/dev/null || true' EXIT
for _ in $(seq "$(nproc)"); do
  (while :; do :; done) &
  loads+=("$!")
done
scripts/suite.sh stress --workspace --all-targets --stress-count "${COUNT:-30}" -E "$filter"
