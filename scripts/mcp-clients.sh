#!/usr/bin/env bash
# Installs pinned versions of the official clients of the Model Context Protocol for Python and TypeScript, and of its
# inspector. Runs scripts with the clients, and checks of the inspector's command line. For tests on one machine; the scripts
# are in tests/sdk.
set -euo pipefail

PY_MCP=2.3.0
NODE_MCP=1.32.2
INSPECTOR=2.12.0

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
FOLDER=$CACHE/mcp-clients-$PY_MCP-$NODE_MCP-$INSPECTOR

usage() {
  echo "usage: scripts/mcp-clients.sh install | python SCRIPT [ARGUMENT...] | node SCRIPT [ARGUMENT...]" >&2
  echo "       scripts/mcp-clients.sh inspector ARGUMENT..." >&2
  exit 64
}

packages() {
  python_packages "$FOLDER/python" "mcp==$PY_MCP"
  npm_packages "$FOLDER" "@modelcontextprotocol/sdk@$NODE_MCP"
  mkdir "$FOLDER/inspector" # it needs other versions of the clients
  npm_packages "$FOLDER/inspector" "@modelcontextprotocol/inspector@$INSPECTOR"
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; once "$FOLDER" "clients and inspector of MCP (about 220 MB, a minute)" packages ;;
  python) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" clients "$FOLDER/python/bin/python" "$@" ;;
  node) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" clients node "$@" ;;
  inspector)
    [[ $# -ge 2 ]] || usage
    shift
    # It keeps files in the home directory.
    run_with "$FOLDER" clients env HOME="$FOLDER/inspector" node "$FOLDER/inspector/node_modules/.bin/mcp-inspector" --cli "$@"
    ;;
  *) usage ;;
esac
