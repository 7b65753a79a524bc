#!/usr/bin/env bash
# Installs pinned versions of the official OpenAI and Anthropic SDKs for Python and Node, and of aimock, a mock server of
# their APIs. Runs scripts with them. For tests on one machine; the scripts are in tests/sdk.
set -euo pipefail

PY_OPENAI=3.54.0
PY_ANTHROPIC=2.12.0
NODE_OPENAI=6.49.0 # the last that runs on Debian's Node 20
NODE_ANTHROPIC=1.12.0
UNDICI=7.30.2 # connects Node's SDKs to a unix socket
AIMOCK=1.43.0

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
FOLDER=$CACHE/sdks-$PY_OPENAI-$PY_ANTHROPIC-$NODE_OPENAI-$NODE_ANTHROPIC-$UNDICI-$AIMOCK

usage() {
  echo "usage: scripts/sdks.sh install | python SCRIPT [ARGUMENT...] | node SCRIPT [ARGUMENT...] | aimock OPTION..." >&2
  exit 64
}

packages() {
  python_packages "$FOLDER/python" "openai==$PY_OPENAI" "anthropic==$PY_ANTHROPIC"
  npm_packages "$FOLDER" "openai@$NODE_OPENAI" "@anthropic-ai/sdk@$NODE_ANTHROPIC" "undici@$UNDICI" \
    "@copilotkit/aimock@$AIMOCK"
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; once "$FOLDER" "the SDKs (about 150 MB, half a minute)" packages ;;
  python) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" sdks "$FOLDER/python/bin/python" "$@" ;;
  node) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" sdks node "$@" ;;
  aimock) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" sdks "$FOLDER/node_modules/.bin/llmock" "$@" ;;
  *) usage ;;
esac
