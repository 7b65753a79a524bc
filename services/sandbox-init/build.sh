#!/usr/bin/env bash
# Builds sandbox-init as one static binary, which runs in any image, and prints its path. Uses the profile and target directory
# of services/proxy-image, so that shared dependencies are compiled once.
#
# usage: build.sh [--print]      --print only prints the fingerprint of the sources
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PROFILE=${PROFILE:-static}

die() { echo "sandbox-init: error: $*" >&2; exit 1; }

# shellcheck source=services/static-program.sh
source services/static-program.sh
static_program_or_fingerprint sandbox-init "$@"
