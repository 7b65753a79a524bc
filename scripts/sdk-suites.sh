#!/usr/bin/env bash
# Runs the test suites of the official Python SDKs against a mock that takes everything, directly and through a proxy, and
# records how many tests differ. The page docs/src/reference/sdk-compatibility.md is made of the record. Takes some
# minutes, so that CI does not run it.
set -euo pipefail

OPENAI=3.54.0
ANTHROPIC=2.12.0
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

# shellcheck source=scripts/install.sh
source "$ROOT/scripts/install.sh"
FOLDER=$CACHE/sdk-suites-$OPENAI-$ANTHROPIC

[[ $# -ge 1 && $# -le 2 ]] || { echo "usage: scripts/sdk-suites.sh PROXY [RECORD]" >&2; exit 64; }

packages() {
  python_packages "$FOLDER/python" "openai==$OPENAI" "anthropic==$ANTHROPIC" pytest pytest-asyncio rich respx \
    inline-snapshot http-snapshot==0.1.9
  "$FOLDER/python/bin/pip" download --quiet --no-deps --no-binary openai --dest "$FOLDER" "openai==$OPENAI"
  "$FOLDER/python/bin/pip" download --quiet --no-deps --no-binary anthropic --dest "$FOLDER" "anthropic==$ANTHROPIC"
  local suite
  for suite in "openai-$OPENAI" "anthropic-$ANTHROPIC"; do
    tar xzf "$FOLDER/$suite.tar.gz" -C "$FOLDER" "$suite/tests" "$suite/pyproject.toml"
    # The suites have a key of their own in the code.
    sed -i 's/^api_key = .*/api_key = os.environ["SUITE_KEY"]/' "$FOLDER/$suite/tests/conftest.py"
  done
}

once "$FOLDER" "the suites of the SDKs (about 150 MB, a minute)" packages
exec "$FOLDER/python/bin/python" "$ROOT/tests/sdk/suites/run.py" "$(realpath "$1")" \
  "${2:-$ROOT/tests/records/sdk-suites.json}" "$FOLDER/openai-$OPENAI" "$FOLDER/anthropic-$ANTHROPIC"
