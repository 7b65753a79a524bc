#!/usr/bin/env bash
# Runs make targets in order and prints the seconds that each took. Stops at the first failure. Stages that are joined by `+`
# run at the same time; their output comes when they end.
#
# usage: stages.sh [--record FILE] STAGE[+STAGE...]...      --record writes the seconds, and the tests that failed once and
#                                                           passed at a second look; more than three of them fail
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
MAX_FLAKY=3
TARGET=${CARGO_TARGET_DIR:-target}
LOGS=$TARGET/stages
FLAKY=$TARGET/suites/flaky
record=
if [[ ${1:-} == --record ]]; then
  record=$2
  shift 2
  rm -f "$FLAKY"
fi
mkdir -p "$LOGS"

# run STAGE  Runs one stage, and leaves its seconds in a file.
run() {
  local began=$SECONDS code=0
  # A shell makes its background commands ignore interrupts, and tests send some.
  env --default-signal=INT,QUIT make --no-print-directory "$1" || code=$?
  echo $((SECONDS - began)) >"$LOGS/$1.seconds"
  [[ $code -eq 0 ]] || echo "== $1 FAILED after $((SECONDS - began)) s" >&2
  return $code
}

# together STAGE...  Runs stages at the same time. When one fails, the others still end, so that their failures are seen.
together() {
  local stage pid code=0 pids=()
  for stage in "$@"; do
    run "$stage" >"$LOGS/$stage.log" 2>&1 &
    pids+=("$!")
  done
  for pid in "${pids[@]}"; do
    wait "$pid" || code=1
    echo "== $1"
    cat "$LOGS/$1.log"
    shift
  done
  return $code
}

# Prints `"NAME": SECONDS` of each stage, joined by commas.
seconds_as_json() {
  local stage separator=
  for stage in "$@"; do
    printf '%s\n    "%s": %d' "$separator" "$stage" "$(<"$LOGS/$stage.seconds")"
    separator=,
  done
}

write_record() {
  local flaky=
  [[ ! -s $FLAKY ]] || flaky=$(sed 's/.*/"&"/' "$FLAKY" | paste -sd , -)
  cat >"$record" <<JSON
{
  "command": "make ci",
  "commit": "$(git rev-parse --short=12 HEAD)",
  "date": "$(date +%F)",
  "machine": { "cores": $(nproc), "kernel": "$(uname -sr)", "rustc": "$(rustc --version)" },
  "seconds": $SECONDS,
  "stages": {$(seconds_as_json "$@")
  },
  "flaky": [${flaky//,/, }]
}
JSON
}

# The seconds of the stages that have ended, also if one fails.
print_seconds() {
  local stage
  echo '== seconds per stage'
  for stage in "${stages[@]}"; do
    [[ ! -e $LOGS/$stage.seconds ]] || printf '%-14s %5d s\n' "$stage" "$(<"$LOGS/$stage.seconds")"
  done
  printf '%-14s %5d s\n' all "$SECONDS"
}

end() {
  # shellcheck disable=SC2046 # a list of process ids
  kill $(jobs -p) 2>/dev/null || true
  print_seconds
}

stages=()
rm -f "$LOGS"/*.seconds
trap end EXIT
for joined in "$@"; do
  IFS=+ read -ra lanes <<<"$joined"
  stages+=("${lanes[@]}")
  if [[ ${#lanes[@]} -gt 1 ]]; then
    together "${lanes[@]}"
  else
    echo "== $joined"
    run "$joined"
  fi
done
[[ -n $record ]] || exit 0
write_record "${stages[@]}"
if [[ -s $FLAKY ]]; then
  echo '== flaky: failed, and passed at a second look; fix them before new work'
  cat "$FLAKY"
  [[ $(wc -l <"$FLAKY") -le $MAX_FLAKY ]] || { echo "stages: error: more than $MAX_FLAKY tests were flaky" >&2; exit 1; }
fi
