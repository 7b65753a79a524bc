#!/usr/bin/env bash
# Builds the dashboard (services/web) and checks its sources. The packages are those that package-lock.json pins; their own
# scripts do not run.
set -euo pipefail

MAX_PAGE_KB=92
# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
WEB=$(cd "$(dirname "${BASH_SOURCE[0]}")/../services/web" && pwd)
DIST=$WEB/dist

usage() {
  echo "usage: scripts/web.sh install | test | build | check" >&2
  exit 64
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
  check) install_packages && check ;;
  *) usage ;;
esac
