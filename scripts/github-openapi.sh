#!/usr/bin/env bash
# Installs GitHub's description of its REST API, and a validator of JSON schemas. Compares exchanges with the description.
# For tests on one machine; versions are pinned in tests/sdk/github_openapi.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/install.sh
source scripts/install.sh
SOURCE=tests/sdk/github_openapi
FOLDER=$CACHE/github-openapi-$(sha256sum $SOURCE/package-lock.json | cut -c 1-16)

usage() {
  echo "usage: scripts/github-openapi.sh install | check FILE" >&2
  exit 64
}

packages() {
  npm_locked "$FOLDER" "$SOURCE"
  # The package has those of all servers and versions, some 390 MB.
  find "$FOLDER/node_modules/@octokit/openapi/generated" -name '*.json' ! -name api.github.com.json -delete
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; once "$FOLDER" "GitHub's description of its API (20 MB)" packages ;;
  check) [[ $# -eq 2 ]] || usage; run_with "$FOLDER" sdks node $SOURCE/check.mjs "$2" ;;
  *) usage ;;
esac
