#!/usr/bin/env bash
# Builds the image of git-sync, one static program beside the git of the base image, and prints its reference. The tag is
# the fingerprint of the sources, so an existing image is up to date.
#
# usage: build.sh [--print]      --print only prints the reference; PROFILE=dev builds it for tests
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
PROFILE=${PROFILE:-release}

say() { echo "git-sync: $*" >&2; }
die() { echo "git-sync: error: $*" >&2; exit 1; }

# shellcheck source=services/static-program.sh
source services/static-program.sh

sources() {
  find services/git-sync/{src,Cargo.toml,Dockerfile,build.sh} services/static-program.sh \
    {runner/git,runner/files,platform/core,platform/runtime}/{src,Cargo.toml} Cargo.toml Cargo.lock rust-toolchain.toml -type f | LC_ALL=C sort
}

base=${BASE_IMAGE:-$(services/base-image/build.sh --print)}
IMAGE=sluicegate/git-sync:$({ sources | xargs sha256sum; echo "$PROFILE $base"; } | sha256sum | cut -c 1-12)

build() {
  local program context
  [[ -n ${BASE_IMAGE:-} ]] || services/base-image/build.sh >/dev/null
  say "building $IMAGE on $base ..."
  program=$(static_program git-sync)
  context=$(mktemp -d)
  # shellcheck disable=SC2064 # the path is known now
  trap "rm -rf '$context'" EXIT
  install -D -m 0755 "$program" "$context/init/git-sync"
  cp services/git-sync/Dockerfile "$context"
  # DOCKER_BUILDKIT=0: Debian's Docker has no BuildKit, and newer clients warn about its absence at length.
  if ! DOCKER_BUILDKIT=0 docker build --build-arg "BASE_IMAGE=$base" --tag "$IMAGE" "$context" >"$context/log" 2>&1
  then
    tail -n 20 "$context/log" >&2
    die "could not build $IMAGE (see above)"
  fi
}

case ${1:-} in
  '')
    docker image inspect "$IMAGE" >/dev/null 2>&1 || build
    docker tag "$IMAGE" sluicegate/git-sync:latest
    ;;
  --print) ;;
  *) echo "usage: services/git-sync/build.sh [--print]" >&2; exit 64 ;;
esac
echo "$IMAGE"
