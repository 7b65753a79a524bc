#!/usr/bin/env bash
# Runs tests with nextest beside a shared Postgres server. Fails if a test fails, or if the tests leave a container, a mount, a
# directory or a process on the machine. Keeps nextest's report in target/suites/NAME.xml, and appends the tests that passed
# only at the second try to target/suites/flaky (the profile `ci` tries again, .config/nextest.toml).
#
# usage: suite.sh NAME NEXTEST_ARGUMENT...
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $# -ge 2 ]] || { echo "usage: scripts/suite.sh NAME NEXTEST_ARGUMENT..." >&2; exit 64; }
NAME=$1
shift
TARGET=${CARGO_TARGET_DIR:-target}
REPORTS=$TARGET/suites
# Not SLUICE_…: the programs read those as settings.
MARK=TEST_SUITE=$$
# What ends by itself has this long to do so.
END_SECONDS=20

# Prints what is on the machine now and was not before.
left() {
  scripts/leftovers.sh "$MARK" >"$REPORTS/after"
  comm -13 "$REPORTS/before" "$REPORTS/after"
}

wait_until_nothing_is_left() {
  local deadline=$((SECONDS + END_SECONDS))
  left >"$REPORTS/left"
  while [[ -s $REPORTS/left ]]; do
    ((SECONDS < deadline)) || return 1
    sleep 0.5
    left >"$REPORTS/left"
  done
}

# Prints the tests that failed before they passed, as PACKAGE::BINARY TEST.
flaky() {
  awk -F '"' '/<testcase / { test = $4 " " $2 } /<flakyFailure / && !seen[test]++ { print test }' "$1"
}

beside=(scripts/with-postgres.sh)
[[ $NAME != processes ]] || beside=() # the only suite that needs none
mkdir -p "$REPORTS"
# Nextest keeps it below the workspace, wherever cargo's outputs are.
report=target/nextest/${NEXTEST_PROFILE:-default}/junit.xml
rm -f "$report"
scripts/leftovers.sh "$MARK" >"$REPORTS/before"
status=0
"${beside[@]}" env "$MARK" cargo nextest run --locked "$@" || status=$?
if [[ -e $report ]]; then
  mv "$report" "$REPORTS/$NAME.xml"
  flaky "$REPORTS/$NAME.xml" | tee -a "$REPORTS/flaky" | sed 's/^/flaky: /'
elif [[ $status -eq 0 ]]; then
  echo "suite: error: nextest left no report in $report" >&2
  exit 1
fi
if ! wait_until_nothing_is_left; then
  echo "suite: error: the tests of $NAME left on this machine:" >&2
  cat "$REPORTS/left" >&2
  exit 1
fi
exit "$status"
