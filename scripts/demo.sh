#!/usr/bin/env bash
# The whole path in one command: sets up what is missing, starts everything on temporary paths, runs one agent in a
# sealed container, and shows what was recorded. With LITELLM_BASE_URL and LITELLM_MASTER_KEY in the environment the
# answer comes from there (COGNI_MODEL names the model), else from the scripted upstream. Leaves nothing running.
#
# usage: demo.sh [QUESTION]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
QUESTION=${1:-In one sentence: what is a sluice gate?}
PORT=18089

say() { echo "demo: $*" >&2; }
title() { printf '\n\033[1m%s\033[0m\n' "$*"; }

scripts/setup.sh docker
scripts/setup.sh images
say 'building (the first time takes a few minutes) ...'
cargo build --quiet --locked --package proxy --package runner --package bench --bins
PATH=$PWD/target/debug:$PATH

WORLD=$(mktemp -d /tmp/sluice-demo.XXXXXX)
cleanup() {
  # Their own children go with them; waiting lets them remove their sockets.
  for job in $(jobs -p); do kill "$job" 2>/dev/null || true; done
  wait
  rm -rf "$WORLD"
}
trap cleanup EXIT

key=${LITELLM_MASTER_KEY:-sk-demo-key}
unset LITELLM_MASTER_KEY
(umask 077 && printf '%s' "$key" >"$WORLD/key")
if [[ -n ${LITELLM_BASE_URL:-} ]]; then
  upstream=$LITELLM_BASE_URL
  model=${COGNI_MODEL:?names the model to ask when LITELLM_BASE_URL is set}
else
  upstream=http://127.0.0.1:$PORT
  model=fake-gap60ms-cost
  scripted-upstream --listen "127.0.0.1:$PORT" >"$WORLD/upstream.log" 2>&1 &
fi

export SLUICE_CONFIG=$WORLD/sluice.toml
cat >"$SLUICE_CONFIG" <<TOML
[upstream]
base_url = "$upstream"
key_file = "$WORLD/key"
[proxy]
run_dir = "$WORLD/run"
state_dir = "$WORLD/state"
[sandbox]
workspace_dir = "$WORLD/workspaces"
installation = "demo"
TOML
unset LITELLM_BASE_URL
sluice up >"$WORLD/up.log" 2>&1 &
for _ in $(seq 100); do
  grep -q '^ready' "$WORLD/up.log" && break
  sleep 0.05
done

title '$ sluice doctor'
sluice doctor
title "\$ sluice run --account acct-demo --model $model \"$QUESTION\""
sluice run --account acct-demo --model "$model" --run-id demo "$QUESTION"
title '$ sluice audit tail --run demo --json'
sluice audit tail --run demo --json | jq .
if [[ $upstream == http://127.0.0.1:$PORT ]]; then
  title 'What the upstream saw: identity and credential are written by the proxy, the agent has neither'
  curl -s "$upstream/_ledger" | jq 'map(select(.path == "/v1/chat/completions"))[-1].headers
    | map(select(.[0] | test("^(authorization|x-litellm|x-cogni)")))
    | map(if .[0] == "authorization" then [.[0], (.[1] | .[0:10]) + "…"] else . end)
    | map({(.[0]): .[1]}) | add'
fi
