#!/usr/bin/env bash
# Installs pinned versions of what tests a page in a browser: React, Vercel's AI SDK for it and in two earlier majors, a
# bundler, the library that drives Chromium, and the rules of axe about accessibility. Runs scripts with them. For tests on one machine; the scripts are
# in tests/sdk. The browser itself is Debian's, which scripts/setup.sh installs.
set -euo pipefail

AI=7.0.173
AI_EARLIER=(5.0.277 6.0.326)
AI_REACT=4.0.177
REACT=19.3.1
ZOD=4.6.7
ESBUILD=0.28.2
PLAYWRIGHT=1.64.1
AXE=4.14.1

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
FOLDER=$CACHE/browser-$AI-$AI_REACT-$REACT-$ESBUILD-$PLAYWRIGHT-$AXE-${AI_EARLIER[0]}-${AI_EARLIER[1]}
CHROMIUM=/usr/bin/chromium
STARTER=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/unprivileged-chromium.sh

usage() {
  echo "usage: scripts/browser.sh install | node SCRIPT [ARGUMENT...]" >&2
  exit 64
}

packages() {
  local version aliases=()
  for version in "${AI_EARLIER[@]}"; do
    aliases+=("ai-${version%%.*}@npm:ai@$version")
  done
  npm_packages "$FOLDER" "${aliases[@]}" "ai@$AI" "@ai-sdk/react@$AI_REACT" "react@$REACT" "react-dom@$REACT" "zod@$ZOD" \
    "esbuild@$ESBUILD" "playwright-core@$PLAYWRIGHT" "axe-core@$AXE"
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; once "$FOLDER" "what tests pages in a browser (about 60 MB, seconds)" packages ;;
  node)
    [[ $# -ge 2 ]] || usage
    [[ -x $CHROMIUM ]] || die "no $CHROMIUM: run scripts/setup.sh browser"
    export CHROMIUM=$STARTER
    run_with "$FOLDER" browser "$@"
    ;;
  *) usage ;;
esac
