#!/usr/bin/env bash
# Measures a user's waiting times, from `sluice run` to the agent's first instruction and to the first token, and the proxy's
# memory. Prints a Markdown table. Does not measure the data plane: bench/ does.
#
# usage: measure.sh [ROUNDS]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/world.sh
source scripts/world.sh
ROUNDS=${1:-21}

# Prints p50 and p95 of the numbers on stdin, in milliseconds with one digit.
percentiles() {
  sort -n | awk '{ v[NR] = $1 } END { printf "%.1f ms | %.1f ms", v[int((NR + 1) * 0.50)], v[int((NR + 1) * 0.95)] }'
}

milliseconds() { awk -v from="$1" -v to="$2" 'BEGIN { print (to - from) / 1e6 }'; }

rss() { awk '/^VmRSS/ { printf "%.1f MiB", $2 / 1024 }' "/proc/$(pgrep -n -x sluice-proxy)/status"; }

first_instruction() {
  local began
  for _ in $(seq "$ROUNDS"); do
    began=$(date +%s%N)
    milliseconds "$began" "$(sluice run --agent measure:clock now)"
  done
}

first_token() {
  local began line
  for _ in $(seq "$ROUNDS"); do
    began=$(date +%s%N)
    sluice run --json "Hello" | while read -r line; do
      [[ $line != *'"text_delta"'* ]] || { milliseconds "$began" "$(date +%s%N)"; cat >/dev/null; }
    done
  done
}

bare_docker() {
  local began
  for _ in $(seq "$ROUNDS"); do
    began=$(date +%s%N)
    milliseconds "$began" "$(docker run --rm --network none --read-only --cap-drop ALL --user 1001:1001 --memory 512m \
      --security-opt no-new-privileges --pids-limit 256 --init sluicegate/sandbox-runtime:latest date +%s%N)"
  done
}

world_build release
world_start "
[agents.'measure:clock']
image = 'sluicegate/sandbox-runtime:latest'
argv = ['date', '+%s%N']
protocol = 'text'
model = 'fake'
[agents.'sandbox:agent']
model = 'fake'"
sluice run --agent measure:clock now >/dev/null # the first one reads the image from disk
idle=$(rss)
echo '| what | p50 | p95 |'
echo '|---|---|---|'
echo "| hardened \`docker run\` to the first instruction, for comparison | $(bare_docker | percentiles) |"
echo "| \`sluice run\` to the agent's first instruction | $(first_instruction | percentiles) |"
echo "| \`sluice run\` to the first token on the screen | $(first_token | percentiles) |"
echo "| memory of \`sluice-proxy\`, idle | $idle | |"
echo "| memory of \`sluice-proxy\` after $((2 * ROUNDS + 1)) runs | $(rss) | |"
