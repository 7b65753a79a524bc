#!/usr/bin/env bash
# Builds the data plane's image, one static binary in an empty root, and prints its reference. README.md describes how to run
# it. The tag is the fingerprint of the sources, so an existing image is up to date.
#
# usage: build.sh [--print]      --print only prints the reference
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
# PROFILE=dev links what a build for tests has compiled already.
PROFILE=${PROFILE:-image}

sources() {
  find proxy/src proxy/Cargo.toml platform/{core,runtime,outbound} Cargo.toml Cargo.lock rust-toolchain.toml \
    services/proxy-image/Dockerfile services/proxy-image/build.sh services/static-program.sh -type f -not -path '*/tests/*' | LC_ALL=C sort
}

FINGERPRINT=$({ sources | xargs sha256sum; echo "$PROFILE"; } | sha256sum | cut -c 1-12)
IMAGE=sluicegate/proxy:$FINGERPRINT

say() { echo "proxy-image: $*" >&2; }
die() { echo "proxy-image: error: $*" >&2; exit 1; }

# shellcheck source=services/static-program.sh
source services/static-program.sh

build() {
  local program context output
  say "building the static binary ..."
  program=$(static_program proxy sluice-proxy)
  context=$(mktemp -d)
  # shellcheck disable=SC2064 # the path is known now
  trap "rm -rf '$context'" EXIT
  cp "$program" services/proxy-image/Dockerfile "$context"
  # DOCKER_BUILDKIT=0: Debian's Docker has no BuildKit, and newer clients warn about its absence at length.
  output=$(DOCKER_BUILDKIT=0 docker build --quiet --tag "$IMAGE" "$context" 2>&1) || die "docker could not build $IMAGE: $output"
  [[ $PROFILE != image ]] || docker tag "$IMAGE" sluicegate/proxy:latest
}

case ${1:-} in
  '') docker image inspect "$IMAGE" >/dev/null 2>&1 || build; echo "$IMAGE" ;;
  --print) echo "$IMAGE" ;;
  *) echo "usage: services/proxy-image/build.sh [--print]" >&2; exit 64 ;;
esac
