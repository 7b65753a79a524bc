#!/usr/bin/env bash
# Demonstrates a whole run: installs missing software, starts Sluicegate on temporary paths, runs one agent in a container
# without a network, and prints its journal record. Uses the model API at LITELLM_BASE_URL with LITELLM_MASTER_KEY if both
# are set, else the scripted upstream. Stops everything at its end, and Docker too unless it was running before.
#
# usage: demo.sh [QUESTION]     asks the agent; COGNI_MODEL names the model, by default the first that is offered
#        demo.sh --shell        opens a shell in which `sluice` is ready, and stops everything when it ends
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/world.sh
source scripts/world.sh
QUESTION=${1:-In one sentence: what is a sluice gate?}
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
DOCKER_WAS_UP=
if scripts/docker.sh status >/dev/null 2>&1; then DOCKER_WAS_UP=yes; fi

title() { printf '\n\033[1m%s\033[0m\n' "$*"; }

# Stops the Docker daemon if it did not run before. world_stop calls it.
after_world() {
  [[ -z $DOCKER_WAS_UP ]] || return 0
  if [[ -d /run/systemd/system ]] && systemctl --quiet is-active docker; then
    systemctl stop docker.socket docker
  else
    scripts/docker.sh stop
  fi
}

# Prints the headers of the last model call that the scripted upstream saw, the key shortened.
headers() {
  grep -F '"/v1/chat/completions"' "$WORLD/ledger" | tail -n 1 |
    grep -oE '\["(authorization|x-litellm-[a-z-]+|x-cogni-[a-z-]+)","([^"\\]|\\.)*"\]' |
    sed -E 's/^\["([^"]+)","(.*)"\]$/  \1: \2/; s/\\"/"/g; s/(: Bearer .{3}).*/\1…/'
}

# part WHAT COMMAND...  Runs a part of the preparations, and prints its seconds unless it was there already.
part() {
  local what=$1 began=$SECONDS
  shift
  "$@"
  ((SECONDS - began < 2)) || echo "demo: $what: $((SECONDS - began)) s" >&2
}

ask() {
  title '$ sluice doctor'
  sluice doctor
  title "\$ sluice run --account acct-demo --model $MODEL \"$QUESTION\""
  sluice run --account acct-demo --model "$MODEL" --run-id demo "$QUESTION"
  title '$ sluice audit tail --run demo --json'
  sluice audit tail --run demo --json
  if [[ -z ${LITELLM_BASE_URL:-} ]]; then
    title 'Headers that the upstream received: the proxy sets identity and credential, the agent has neither'
    headers
  fi
  title 'Try next:'
  cat <<'NEXT'
  scripts/demo.sh "Why is the sky blue?"    # asks another question, within seconds from now on
  scripts/demo.sh --shell                   # a shell with all this running: sluice audit top, sluice freeze --all
  scripts/setup.sh images && make install && sluice init    # an optimised image and programs, with your own upstream
NEXT
}

interact() {
  title 'Sluicegate runs until you type exit. For example:'
  cat <<NEXT
  sluice run --model $MODEL "Why is the sky blue?"
  sluice audit tail
  sluice audit top
NEXT
  PS1='sluicegate \w \$ ' bash --norc -i || true
}

trap after_world EXIT
if [[ ! -e $CACHE/demo.done ]]; then
  echo 'demo: the first time takes some minutes: packages, programs, an image; later a few seconds' >&2
fi
# The image has programs of the same build.
export PROFILE=dev
part 'packages, the engine and the base image' scripts/setup.sh base
part 'programs' world_build "$PROFILE"
part 'the sandbox image' scripts/setup.sh sandbox
part 'start' world_start ''
mkdir -p "$CACHE"
touch "$CACHE/demo.done"
MODEL=${COGNI_MODEL:-}
if [[ -z $MODEL && -z ${LITELLM_BASE_URL:-} ]]; then
  MODEL=fake-gap60ms-cost
elif [[ -z $MODEL ]]; then
  MODEL=$(sluice models | awk 'NR == 2 { print $1 }')
  [[ -n $MODEL ]] || { echo 'demo: the upstream lists no model: name one in COGNI_MODEL' >&2; exit 1; }
fi
if [[ $QUESTION == --shell ]]; then interact; else ask; fi
