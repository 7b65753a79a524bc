#!/usr/bin/env bash
# Runs tests with nextest beside a shared Postgres server. Fails if a test fails, or if the tests leave a container, a mount, a
# directory or a process on the machine. Keeps nextest's report in target/suites/NAME.xml.
#
# usage: suite.sh NAME NEXTEST_ARGUMENT...
#
# With SECOND_LOOK=yes, as in CI, a lost race does not cost the other tests their result: up to three tests that failed run
# alone, three times in a row. Those that pass each time are printed and appended to target/suites/flaky. What a failed test
# could not clean up is printed and does not count.
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
MAX_FAILED=3
LOOKS=3

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

# Prints what is left, and leaves it out from now on.
forgive() {
  echo "suite: left on this machine where a test failed:"
  cat "$REPORTS/left"
  sort -u -o "$REPORTS/before" "$REPORTS/before" "$REPORTS/left"
}

# Prints the tests that failed, as PACKAGE::BINARY TEST.
failed() {
  awk -F '"' '/<testcase / { test = $4 " " $2 } /<failure / && !seen[test]++ { print test }' "$1"
}

# look_again FILE  Runs the tests of a list again. One fault in three shows with 70 % in three runs, one in two with 88 %.
look_again() {
  local filter
  [[ -s $1 && $(wc -l <"$1") -le $MAX_FAILED ]] || return 1
  filter=$(awk '{ printf "%s(binary_id(=%s) & test(=%s))", (NR > 1 ? " + " : ""), $1, $2 }' "$1")
  echo "suite: $LOOKS more runs of: $(cut -d ' ' -f 2 "$1" | paste -sd ' ')"
  run --workspace --all-targets --stress-count "$LOOKS" -E "$filter" || return 1
  sed 's/^/flaky: /' "$1"
  cat "$1" >>"$REPORTS/flaky"
}

run() {
  "${beside[@]}" env "$MARK" cargo nextest run --locked "$@"
}

beside=(scripts/with-postgres.sh)
[[ $NAME != processes ]] || beside=() # the only suite that needs none
mkdir -p "$REPORTS"
# Nextest keeps it below the workspace, wherever cargo's outputs are.
report=target/nextest/default/junit.xml
rm -f "$report" "$REPORTS/$NAME.xml"
scripts/leftovers.sh "$MARK" >"$REPORTS/before"
status=0
run "$@" || status=$?
if [[ -e $report ]]; then
  mv "$report" "$REPORTS/$NAME.xml"
elif [[ $status -eq 0 ]]; then
  echo "suite: error: nextest left no report in $report" >&2
  exit 1
fi
if [[ $status -ne 0 && -e $REPORTS/$NAME.xml && ${SECOND_LOOK:-} == yes ]]; then
  failed "$REPORTS/$NAME.xml" >"$REPORTS/failed"
  wait_until_nothing_is_left || forgive
  look_again "$REPORTS/failed" && status=0
fi
if ! wait_until_nothing_is_left; then
  echo "suite: error: the tests of $NAME left on this machine:" >&2
  cat "$REPORTS/left" >&2
  exit 1
fi
exit "$status"
