#!/usr/bin/env bash
# Installs pinned versions of the official clients of the Model Context Protocol for Python and TypeScript. Runs scripts with
# them. For tests on one machine; the scripts are in tests/sdk.
set -euo pipefail

PY_MCP=2.3.0
NODE_MCP=1.32.2

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
FOLDER=$CACHE/mcp-clients-$PY_MCP-$NODE_MCP

usage() {
  echo "usage: scripts/mcp-clients.sh install | python SCRIPT [ARGUMENT...] | node SCRIPT [ARGUMENT...]" >&2
  exit 64
}

packages() {
  python_packages "$FOLDER/python" "mcp==$PY_MCP"
  npm_packages "$FOLDER" "@modelcontextprotocol/sdk@$NODE_MCP"
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; once "$FOLDER" "clients of MCP (about 110 MB, half a minute)" packages ;;
  python) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" clients "$FOLDER/python/bin/python" "$@" ;;
  node) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" clients node "$@" ;;
  *) usage ;;
esac
