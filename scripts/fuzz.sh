#!/usr/bin/env bash
# Fuzzes the proxy's doors and the one to gateways (fuzz/src says what must hold of each), two targets at a time. What was found interesting is
# kept in target/fuzz/corpus and gone on from; what is checked in is fuzz/seeds. A crash leaves its input in
# target/fuzz/artifacts: once the defect is mended, the input goes into the seeds.
#
# Stable Rust takes the compiler's fuzzing options with RUSTC_BOOTSTRAP=1; nothing that is shipped is built so.
#
# Does a fuzzer find anything at all? `control` builds with the feature `spoiled`, in which each oracle has one thing
# wrong: it forbids a field that is allowed (body), a slot that ends in `e` (path), a header that passes (header), many
# attempts (token), the reported usage where a word is repeated (answer, stream), that of a call which used more than was set
# aside (limits) and a chat event of the turn's own (gateway). None of the seeds trips over it, so each has to be found. That takes seconds, for a body up to a minute;
# what is not found in SECONDS_EACH fails.
#
# TARGETS="stream answer" has only these run.
#
# usage: fuzz.sh run               SECONDS_EACH (30) per target, from SEED (0: any)
#        fuzz.sh control           at most SECONDS_EACH per target
#        fuzz.sh record FILE       the same as run, of a commit, written down
#        fuzz.sh one TARGET INPUT  a single input again
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
HOME_OF_ALL=target/fuzz
read -ra TARGETS <<<"${TARGETS:-body stream header token path answer limits gateway}"
SECONDS_EACH=${SECONDS_EACH:-30}
# Of libFuzzer: the same walk from the same corpus each time; 0 is another one each time.
SEED=${SEED:-0}
AT_ONCE=2

# build NAME [OPTION...]  into $HOME_OF_ALL/NAME
build() {
  local name=$1 target
  shift
  cargo metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml >/dev/null
  RUSTC_BOOTSTRAP=1 cargo fuzz build --fuzz-dir fuzz --target-dir "$HOME_OF_ALL" "$@"
  mkdir -p "$HOME_OF_ALL/$name"
  for target in "${TARGETS[@]}"; do
    cp -f "$HOME_OF_ALL"/*-linux-gnu/release/"$target" "$HOME_OF_ALL/$name/$target"
  done
}

# fuzz NAME TARGET  with the log and what becomes of it in $HOME_OF_ALL/NAME
fuzz() {
  local name=$1 target=$2 began=$SECONDS
  local own=$HOME_OF_ALL/$name
  mkdir -p "$own/corpus/$target" "$own/artifacts/$target"
  local code=0
  "$own/$target" "$own/corpus/$target" "fuzz/seeds/$target" -dict="fuzz/dictionaries/$target" \
    -artifact_prefix="$own/artifacts/$target/" -max_len=2048 -timeout=10 -rss_limit_mb=2048 \
    -seed="$SEED" -max_total_time="$SECONDS_EACH" -print_final_stats=1 >"$own/$target.log" 2>&1 || code=$?
  echo "$code $((SECONDS - began))" >"$own/$target.end"
}

# all NAME  runs all targets
all() {
  local target
  rm -rf "${HOME_OF_ALL:?}/$1"/{artifacts,*.end}
  for target in "${TARGETS[@]}"; do
    while (($(jobs -rp | wc -l) >= AT_ONCE)); do wait -n; done
    fuzz "$1" "$target" &
  done
  wait
}

# stat_of NAME TARGET STAT
stat_of() {
  sed -n "s/^stat::$3: *//p" "$HOME_OF_ALL/$1/$2.log" | tail -n 1
}

# progress NAME TARGET  the last `cov: 1 ft: 2 corp: 3/4b` as "1 3"
progress() {
  sed -n 's/.* cov: \([0-9]*\) .* corp: \([0-9]*\)\/.*/\1 \2/p' "$HOME_OF_ALL/$1/$2.log" | tail -n 1
}

# report NAME  a line per target; fails if one has crashed
report() {
  local target code took cov corpus input failed=0
  for target in "${TARGETS[@]}"; do
    read -r code took <"$HOME_OF_ALL/$1/$target.end"
    read -r cov corpus < <(progress "$1" "$target") || true
    printf '%-8s %4d s %12s runs %8s/s   coverage %s, corpus %s\n' "$target" "$took" \
      "$(stat_of "$1" "$target" number_of_executed_units)" "$(stat_of "$1" "$target" average_exec_per_sec)" \
      "${cov:-?}" "${corpus:-?}"
    [[ $code -ne 0 ]] || continue
    failed=1
    grep -A 4 -E 'panicked at|ERROR: ' "$HOME_OF_ALL/$1/$target.log" | head -n 12 >&2 || true
    for input in "$HOME_OF_ALL/$1/artifacts/$target"/*; do
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
  rm -rf "$HOME_OF_ALL/spoiled/corpus"
  all spoiled
  for target in "${TARGETS[@]}"; do
    read -r code took <"$HOME_OF_ALL/spoiled/$target.end"
    if [[ $code -ne 0 ]] && grep -q 'panicked at src/' "$HOME_OF_ALL/spoiled/$target.log"; then
      echo "$target: found after $took s"
    else
      echo "$target: NOT found in $took s" >&2
      missed=1
    fi
  done
  return $missed
}

# record FILE
record() {
  local target code took cov corpus rows=()
  if [[ -n $(git status --porcelain) ]]; then
    echo "fuzz: there are changes: commit them, so that the record can name what was run" >&2
    exit 1
  fi
  build good
  all good
  report good || echo "fuzz: recording crashes" >&2
  for target in "${TARGETS[@]}"; do
    read -r code took <"$HOME_OF_ALL/good/$target.end"
    read -r cov corpus < <(progress good "$target")
    rows+=("$(jq -n --arg name "$target" --argjson seconds "$took" --argjson coverage "$cov" --argjson corpus "$corpus" \
      --argjson executions "$(stat_of good "$target" number_of_executed_units)" \
      --argjson exec_per_s "$(stat_of good "$target" average_exec_per_sec)" \
      --argjson crashes "$(find "$HOME_OF_ALL/good/artifacts/$target" -type f | wc -l)" \
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
    "$HOME_OF_ALL/good/$2" "$3"
    ;;
  *) echo "usage: scripts/fuzz.sh run|control|record FILE|one TARGET INPUT" >&2; exit 64 ;;
esac
