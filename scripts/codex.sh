#!/usr/bin/env bash
# Installs the newest Codex that tests use, and runs it. For tests on one machine: the image of the agent that ships has
# a version of its own (services/agents/codex/recipe.json).
set -euo pipefail

CODEX=0.171.0

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
FOLDER=$CACHE/codex-$CODEX

usage() {
  echo "usage: scripts/codex.sh install | run ARGUMENT..." >&2
  exit 64
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; once "$FOLDER" "Codex $CODEX (about 430 MB, half a minute)" npm_packages "$FOLDER" "@openai/codex@$CODEX" ;;
  run) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" clients "$FOLDER/node_modules/.bin/codex" "$@" ;;
  *) usage ;;
esac
