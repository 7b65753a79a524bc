#!/usr/bin/env bash
# Installs pinned generators of clients for Python and TypeScript, Temporal's SDK, and schemathesis, which tests an API by
# its OpenAPI document. For tests on one machine: they run against the HTTP API of `sluice up`.
set -euo pipefail

SCHEMATHESIS=4.32.5
OPENAPI_PYTHON_CLIENT=0.29.1
OPENAPI_TYPESCRIPT=7.13.0
OPENAPI_FETCH=0.17.0
TYPESCRIPT=5.9.3 # the last major version that openapi-typescript takes
TSX=4.23.15      # runs TypeScript on Debian's Node 20
TYPES_NODE=20.19.43
TEMPORAL=1.35.0
HTTPX=0.28.1

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
FOLDER=$CACHE/clients-$SCHEMATHESIS-$OPENAPI_PYTHON_CLIENT-$OPENAPI_TYPESCRIPT-$OPENAPI_FETCH-$TYPESCRIPT-$TSX-$TYPES_NODE-$TEMPORAL-$HTTPX

usage() {
  echo "usage: scripts/clients.sh install | folder | schemathesis ARGUMENT... | temporal SCRIPT [ARGUMENT...]" >&2
  exit 64
}

packages() {
  # Each has an environment of its own: their versions of shared packages need not agree.
  python_packages "$FOLDER/schemathesis" "schemathesis==$SCHEMATHESIS"
  python_packages "$FOLDER/temporal" "temporalio==$TEMPORAL" "httpx==$HTTPX"
  python_packages "$FOLDER/python" "openapi-python-client==$OPENAPI_PYTHON_CLIENT"
  npm_packages "$FOLDER" "openapi-typescript@$OPENAPI_TYPESCRIPT" "openapi-fetch@$OPENAPI_FETCH" \
    "typescript@$TYPESCRIPT" "tsx@$TSX" "@types/node@$TYPES_NODE"
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; once "$FOLDER" "generators of clients (about 300 MB, half a minute)" packages ;;
  folder) [[ $# -eq 1 ]] || usage; installed "$FOLDER" clients; echo "$FOLDER" ;;
  schemathesis) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" clients "$FOLDER/schemathesis/bin/schemathesis" "$@" ;;
  temporal) [[ $# -ge 2 ]] || usage; shift; run_with "$FOLDER" clients "$FOLDER/temporal/bin/python" "$@" ;;
  *) usage ;;
esac
