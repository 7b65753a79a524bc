#!/usr/bin/env bash
# Builds cogni-tool as one static binary, which runs in any image, and prints its path. Uses the profile and target directory
# of services/proxy-image, so that shared dependencies are compiled once.
#
# usage: build.sh [--print]      --print only prints the fingerprint of the sources
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PROFILE=${PROFILE:-static}

die() { echo "cogni-tool: error: $*" >&2; exit 1; }

fingerprint() {
  local sources
  sources=$(find services/cogni-tool/src services/cogni-tool/{Cargo.toml,build.sh} platform/core/{src,Cargo.toml} \
    Cargo.toml Cargo.lock rust-toolchain.toml -type f | LC_ALL=C sort)
  { xargs sha256sum <<<"$sources"; echo "$PROFILE"; } | sha256sum | cut -c 1-12
}

build() {
  local target
  command -v cargo >/dev/null || die "cargo is missing: install Rust with rustup first"
  target=$(rustc -vV | sed -n 's/^host: //p')
  [[ $target == *-linux-gnu ]] || die "a static binary is built on Linux with glibc, not on $target"
  # An explicit target keeps the flag from procedural macros, which cannot be static.
  RUSTFLAGS='-C target-feature=+crt-static' \
    cargo build --quiet --locked -p cogni-tool --profile "$PROFILE" --target "$target" >&2
  echo "${CARGO_TARGET_DIR:-target}/$target/$PROFILE/cogni-tool"
}

case ${1:-} in
  '') build ;;
  --print) fingerprint ;;
  *) echo "usage: services/cogni-tool/build.sh [--print]" >&2; exit 64 ;;
esac
