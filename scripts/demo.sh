#!/usr/bin/env bash
# Demonstrates a whole run: installs missing software, starts Sluicegate on temporary paths, runs one agent in a container
# without a network, and prints the journal records. Uses the LiteLLM at LITELLM_BASE_URL with LITELLM_MASTER_KEY and
# COGNI_MODEL if they are set, else the scripted upstream. Stops all processes at its end.
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
  title 'Headers that the upstream received: the proxy sets identity and credential, the agent has neither'
  curl -s "$WORLD_UPSTREAM/_ledger" | jq 'map(select(.path == "/v1/chat/completions"))[-1].headers
    | map(select(.[0] | test("^(authorization|x-litellm|x-cogni)")))
    | map(if .[0] == "authorization" then [.[0], (.[1] | .[0:10]) + "…"] else . end)
    | map({(.[0]): .[1]}) | add'
fi
