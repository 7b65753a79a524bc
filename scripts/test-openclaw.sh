#!/usr/bin/env bash
# Tests one version of OpenClaw: installs it (about 800 MB) and runs the tests of each feature whose range includes it. Tests
# of runner/gateways/src/openclaw.rs compare its ranges with these.
#
# usage: test-openclaw.sh VERSION
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ $# -eq 1 ]] || { echo "usage: scripts/test-openclaw.sh VERSION" >&2; exit 64; }
export OPENCLAW_VERSION=$1

RANGES='
trace 2026.8.2 2026.9.6
slot 2026.2.6-3 2026.9.6
plugin 2026.9.5 2026.9.6
managed 2026.9.6 2026.9.6
image 2026.8.2 2026.9.6
'

say() { echo "test-openclaw: $*" >&2; }

# in_order VERSION...  Returns whether each version is at least the one before it.
in_order() { printf '%s\n' "$@" | sort --version-sort --check=quiet; }

clients() { cargo nextest run --locked -p tests --test clients --run-ignored all --no-tests=fail -E "$1"; }

# check FEATURE  Runs the tests of a feature. Protocol 3 supports slots only.
check() {
  case $1 in
    trace) clients 'test(a_real_gateway_keeps_turns_and_models_apart)' ;;
    slot)
      if [[ $OPENCLAW_VERSION == 2026.2.* ]]; then
        clients 'test(/an_older_gateway/)'
        scripts/openclaw.sh node --test services/sandbox-openclaw/agent/older.test.mjs
      else
        clients 'test(a_real_gateway_keeps_turns_and_models_apart)'
      fi
      ;;
    plugin) clients 'test(each_sessions_calls_carry_its_own_headers)' ;;
    managed) clients 'test(a_managed_gateway_has_one_way_in)' ;;
    image) services/sandbox-openclaw/build.sh >/dev/null ;; # its build runs a rehearsal
  esac
}

scripts/openclaw.sh install
while read -r feature oldest newest; do
  [[ -n $feature ]] || continue
  if in_order "$oldest" "$OPENCLAW_VERSION" "$newest"; then
    say "testing $feature with OpenClaw $OPENCLAW_VERSION"
    check "$feature" </dev/null
  else
    say "skipping $feature: supported from OpenClaw $oldest to $newest, not $OPENCLAW_VERSION"
  fi
done <<<"$RANGES"
