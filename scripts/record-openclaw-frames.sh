#!/usr/bin/env bash
# Records the frames of a real OpenClaw gateway into tests/openclaw/frames/VERSION. The tests of gateway-bridge and the scripted
# gateway use them. Run it again when a version is added, and review the difference.
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
