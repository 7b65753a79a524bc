#!/usr/bin/env bash
# Fuzzes the inputs of the proxy, host tools, gateways and their clients, two targets at a time. fuzz/src defines the
# oracle of each target.
# Each run continues from the corpus in target/fuzz/good/corpus; fuzz/seeds is checked in. A crash leaves its input in
# target/fuzz/good/artifacts: after the fix, add that input to the seeds.
#
# Stable Rust accepts the compiler's fuzzing options with RUSTC_BOOTSTRAP=1. No shipped binary is built this way.
#
# `control` checks that the fuzzers find defects. It builds with the feature `spoiled`, which adds one defect to each oracle.
# The spoiled oracle rejects an allowed field (body), a slot that ends in `e` (path), an allowed header (header), many
# attempts (token), the reported usage after a repeated word (answer, stream), usage above the reservation (limits), the
# turn's own chat event (gateway), a token of three characters (client), a call id of three characters (exec), an id of two digits (mcp), or a list of three (text). No seed triggers
# these defects, so the fuzzer has to find each input. That takes seconds, for a body up to a minute. A defect that is
# not found within SECONDS_EACH fails the check.
#
# TARGETS="stream answer" runs only these targets.
#
# Everything here gives way to other work: in CI it runs beside tests that wait for programs to start.
#
# usage: fuzz.sh run               fuzzes each target for SECONDS_EACH (30), from SEED (0: random)
#        fuzz.sh control           checks the fuzzers, for at most SECONDS_EACH per target
#        fuzz.sh record FILE       the same as run, on a clean commit; writes the figures to FILE
#        fuzz.sh one TARGET INPUT  runs a single input again
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
FUZZ_DIR=target/fuzz
read -ra TARGETS <<<"${TARGETS:-body stream header token path answer limits gateway client exec mcp text}"
SECONDS_EACH=${SECONDS_EACH:-30}
# libFuzzer's seed: the same inputs from the same corpus each time; 0 selects a random seed.
SEED=${SEED:-0}
AT_ONCE=2

# build NAME [OPTION...]  Builds all targets into $FUZZ_DIR/NAME.
build() {
  local name=$1 target
  shift
  cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
  RUSTC_BOOTSTRAP=1 chrt --idle 0 cargo fuzz build --fuzz-dir fuzz --target-dir "$FUZZ_DIR" "$@"
  mkdir -p "$FUZZ_DIR/$name"
  for target in "${TARGETS[@]}"; do
    cp -f "$FUZZ_DIR"/*-linux-gnu/release/"$target" "$FUZZ_DIR/$name/$target"
  done
}

# fuzz NAME TARGET  Runs one target. Writes its log, exit code and seconds to $FUZZ_DIR/NAME.
fuzz() {
  local name=$1 target=$2 began=$SECONDS
  local dir=$FUZZ_DIR/$name
  mkdir -p "$dir/corpus/$target" "$dir/artifacts/$target"
  local code=0
  nice -n 5 "$dir/$target" "$dir/corpus/$target" "fuzz/seeds/$target" -dict="fuzz/dictionaries/$target" \
    -artifact_prefix="$dir/artifacts/$target/" -max_len=2048 -timeout=10 -rss_limit_mb=2048 \
    -seed="$SEED" -max_total_time="$SECONDS_EACH" -print_final_stats=1 >"$dir/$target.log" 2>&1 || code=$?
  echo "$code $((SECONDS - began))" >"$dir/$target.end"
}

# all NAME  Runs all targets, AT_ONCE at a time.
all() {
  local target
  rm -rf "${FUZZ_DIR:?}/$1"/{artifacts,*.end}
  for target in "${TARGETS[@]}"; do
    while (($(jobs -rp | wc -l) >= AT_ONCE)); do wait -n; done
    fuzz "$1" "$target" &
  done
  wait
}

# stat_of NAME TARGET STAT  Prints a final statistic of libFuzzer.
stat_of() {
  sed -n "s/^stat::$3: *//p" "$FUZZ_DIR/$1/$2.log" | tail -n 1
}

# progress NAME TARGET  Prints the last `cov: 1 ft: 2 corp: 3/4b` as "1 3".
progress() {
  sed -n 's/.* cov: \([0-9]*\) .* corp: \([0-9]*\)\/.*/\1 \2/p' "$FUZZ_DIR/$1/$2.log" | tail -n 1
}

# report NAME  Prints a line per target. Fails if one has crashed.
report() {
  local target code took cov corpus input failed=0
  for target in "${TARGETS[@]}"; do
    read -r code took <"$FUZZ_DIR/$1/$target.end"
    read -r cov corpus < <(progress "$1" "$target") || true
    printf '%-8s %4d s %12s runs %8s/s   coverage %s, corpus %s\n' "$target" "$took" \
      "$(stat_of "$1" "$target" number_of_executed_units)" "$(stat_of "$1" "$target" average_exec_per_sec)" \
      "${cov:-?}" "${corpus:-?}"
    [[ $code -ne 0 ]] || continue
    failed=1
    grep -A 4 -E 'panicked at|ERROR: ' "$FUZZ_DIR/$1/$target.log" | head -n 12 >&2 || true
    for input in "$FUZZ_DIR/$1/artifacts/$target"/*; do
      [[ -e $input ]] || continue
      printf '%s fails on %s\n  again: scripts/fuzz.sh one %s %s\n' "$target" "$input" "$target" "$input" >&2
    done
  done
  return $failed
}

run() {
  build good
  all good
  report good
}

control() {
  local target code took missed=0
  build spoiled --features spoiled
  rm -rf "$FUZZ_DIR/spoiled/corpus"
  all spoiled
  for target in "${TARGETS[@]}"; do
    read -r code took <"$FUZZ_DIR/spoiled/$target.end"
    if [[ $code -ne 0 ]] && grep -q 'panicked at src/' "$FUZZ_DIR/spoiled/$target.log"; then
      echo "$target: found after $took s"
    else
      echo "$target: NOT found in $took s" >&2
      missed=1
    fi
  done
  return $missed
}

# record FILE  Fuzzes the current commit and writes the figures as JSON.
record() {
  local target code took cov corpus rows=()
  if [[ -n $(git status --porcelain) ]]; then
    echo "fuzz: the working tree has changes: commit them, so that the record names the code that ran" >&2
    exit 1
  fi
  build good
  all good
  report good || echo "fuzz: recording crashes" >&2
  for target in "${TARGETS[@]}"; do
    read -r code took <"$FUZZ_DIR/good/$target.end"
    read -r cov corpus < <(progress good "$target")
    rows+=("$(jq -n --arg name "$target" --argjson seconds "$took" --argjson coverage "$cov" --argjson corpus "$corpus" \
      --argjson executions "$(stat_of good "$target" number_of_executed_units)" \
      --argjson exec_per_s "$(stat_of good "$target" average_exec_per_sec)" \
      --argjson crashes "$(find "$FUZZ_DIR/good/artifacts/$target" -type f | wc -l)" \
      '{$name, $seconds, $executions, $exec_per_s, $coverage, $corpus, $crashes}')")
  done
  mkdir -p "$(dirname "$1")"
  printf '%s\n' "${rows[@]}" | jq -s --arg command "make fuzz-record RECORD_SECONDS=$SECONDS_EACH TARGETS='${TARGETS[*]}' RECORD=$1" --arg commit "$(git rev-parse HEAD)" \
    --arg machine "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores, Linux $(uname -r)" \
    --arg date "$(date -u +%FT%TZ)" '{$command, $commit, $machine, $date, targets: .}' >"$1"
}

case "$#:${1:-}" in
  1:run | 1:control) "$1" ;;
  2:record) record "$2" ;;
  3:one)
    build good
    "$FUZZ_DIR/good/$2" "$3"
    ;;
  *) echo "usage: scripts/fuzz.sh run|control|record FILE|one TARGET INPUT" >&2; exit 64 ;;
esac
