#!/usr/bin/env bash
# Installs pinned versions of public servers of the Model Context Protocol, and builds an image of them on the sandbox's own
# base. Pushes nothing. For tests on one machine.
#
# usage: scripts/mcp-servers.sh install     downloads the packages into the cache
#        scripts/mcp-servers.sh image       builds the image if it is missing, and prints its name
set -euo pipefail

EVERYTHING=2026.8.31
MEMORY=2026.8.31

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
FOLDER=$CACHE/mcp-servers-$EVERYTHING-$MEMORY
IMAGE=sluicegate/mcp-servers:everything-$EVERYTHING-memory-$MEMORY
BASE=sluicegate/sandbox-runtime:latest

usage() {
  echo "usage: scripts/mcp-servers.sh install | image" >&2
  exit 64
}

packages() {
  npm_packages "$FOLDER" "@modelcontextprotocol/server-everything@$EVERYTHING" \
    "@modelcontextprotocol/server-memory@$MEMORY"
}

# The container has neither network nor package manager: all that the servers need is in the image.
build() {
  local log=$FOLDER.image.log
  printf 'FROM %s\nCOPY node_modules /opt/mcp/node_modules\nENTRYPOINT []\n' "$BASE" |
    DOCKER_BUILDKIT=0 docker build --tag "$IMAGE" --file - "$FOLDER" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "could not build $IMAGE (is $BASE there? scripts/images.sh builds it)"
  }
  rm "$log"
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; once "$FOLDER" "servers of MCP (about 40 MB)" packages ;;
  image)
    [[ $# -eq 1 ]] || usage
    installed "$FOLDER" mcp-servers
    docker image inspect "$IMAGE" >/dev/null 2>&1 || build
    echo "$IMAGE"
    ;;
  *) usage ;;
esac
