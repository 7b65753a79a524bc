#!/usr/bin/env bash
# Records what a real OpenClaw gateway says on its socket, for the tests of gateway-bridge and for the scripted gateway:
# tests/openclaw/frames/VERSION. Run it again when a version is added, and look at the difference.
#
# usage: scripts/record-openclaw-frames.sh [VERSION [STORY...]]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
if [[ $# -gt 0 ]]; then
  export OPENCLAW_VERSION=$1
  shift
fi
scripts/openclaw.sh install
exec scripts/openclaw.sh node tests/openclaw/record_frames.mjs \
  "tests/openclaw/frames/$(scripts/openclaw.sh version)" "$@"
