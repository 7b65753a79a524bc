#!/usr/bin/env bash
# Records the picture of a terminal that the README shows: `sluice run`, `sluice audit trace` and `sluice audit top` against the
# scripted upstream. Everything in it is real output. Needs tmux, whose screen is recorded, and Docker with the sandbox image.
#
# usage: record-terminal.sh [FILE]    writes docs/src/how-to/images/terminal.svg unless FILE is given
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
FILE=${1:-docs/src/how-to/images/terminal.svg}
command -v tmux >/dev/null || { echo 'record-terminal: tmux is missing: apt-get install tmux' >&2; exit 1; }
# shellcheck source=scripts/world.sh
source scripts/world.sh
scripts/setup.sh docker
scripts/images.sh runtime
world_build dev
world_start '
[agents."sandbox:agent"]
model = "fake-gap60ms-cost"
[agents."team:reviewer"]
image = "sluicegate/sandbox-runtime:latest"
argv = ["bash", "-c", "sleep 3; exec node /agent/run.mjs"]
stream = "answer"
model = "fake-gap60ms-cost"
'
node scripts/terminal/record.mjs >"$WORLD/terminal.svg"
cp "$WORLD/terminal.svg" "$FILE"
echo "$FILE: $(stat --format %s "$FILE") bytes" >&2
