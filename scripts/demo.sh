#!/usr/bin/env bash
# The whole path in one command: sets up what is missing, starts everything on temporary paths, runs one agent in a
# sealed container, and shows what was recorded. With LITELLM_BASE_URL and LITELLM_MASTER_KEY in the environment the
# answer comes from there (COGNI_MODEL names the model), else from the scripted upstream. Leaves nothing running.
#
# usage: demo.sh [QUESTION]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/world.sh
source scripts/world.sh
QUESTION=${1:-In one sentence: what is a sluice gate?}
MODEL=fake-gap60ms-cost
if [[ -n ${LITELLM_BASE_URL:-} ]]; then
  MODEL=${COGNI_MODEL:?names the model to ask when LITELLM_BASE_URL is set}
fi

title() { printf '\n\033[1m%s\033[0m\n' "$*"; }

scripts/setup.sh docker
scripts/setup.sh images
world_start dev ''

title '$ sluice doctor'
sluice doctor
title "\$ sluice run --account acct-demo --model $MODEL \"$QUESTION\""
sluice run --account acct-demo --model "$MODEL" --run-id demo "$QUESTION"
title '$ sluice audit tail --run demo --json'
sluice audit tail --run demo --json | jq .
if [[ -z ${LITELLM_BASE_URL:-} ]]; then
  title 'What the upstream saw: identity and credential are written by the proxy, the agent has neither'
  curl -s "$WORLD_UPSTREAM/_ledger" | jq 'map(select(.path == "/v1/chat/completions"))[-1].headers
    | map(select(.[0] | test("^(authorization|x-litellm|x-cogni)")))
    | map(if .[0] == "authorization" then [.[0], (.[1] | .[0:10]) + "…"] else . end)
    | map({(.[0]): .[1]}) | add'
fi
