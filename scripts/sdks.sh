#!/usr/bin/env bash
# The official SDKs of OpenAI and Anthropic for Python and Node, and aimock, a mock server of their APIs, for tests on
# one machine: installs pinned versions and runs scripts with them. What the tests do with them is in tests/sdk.
set -euo pipefail

PY_OPENAI=3.54.0
PY_ANTHROPIC=2.12.0
NODE_OPENAI=6.49.0 # the last that runs on Debian's Node 20
NODE_ANTHROPIC=1.12.0
UNDICI=7.30.2 # how Node's SDKs reach a unix socket
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

run() {
  [[ -e $FOLDER/.ok ]] || die "the SDKs are not installed: run scripts/setup.sh sdks"
  export PYTHONDONTWRITEBYTECODE=1 # pip compiled the packages; nothing is to appear in the repository
  export SDKS=$FOLDER              # where scripts find their packages: they do not lie beside them
  exec "$@"
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; once "$FOLDER" "the SDKs (about 150 MB, half a minute)" packages ;;
  python) [[ $# -ge 2 ]] || usage; shift; run "$FOLDER/python/bin/python" "$@" ;;
  node) [[ $# -ge 2 ]] || usage; shift; run node "$@" ;;
  aimock) [[ $# -ge 2 ]] || usage; shift; run "$FOLDER/node_modules/.bin/llmock" "$@" ;;
  *) usage ;;
esac
