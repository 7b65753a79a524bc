#!/usr/bin/env bash
# Builds cogni-tool as one static binary, which runs in any image, and prints its path.
#
# usage: build.sh [--print]      --print only prints the fingerprint of the sources; PROFILE=dev builds it for tests
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PROFILE=${PROFILE:-release}

die() { echo "cogni-tool: error: $*" >&2; exit 1; }

# shellcheck source=services/static-program.sh
source services/static-program.sh
static_program_or_fingerprint cogni-tool "$@"
