#!/usr/bin/env bash
# Builds what `sluice demo` needs, and runs it: packages, programs, the sandbox image. Stops Docker at its end unless it was
# running before.
#
# usage: demo.sh [QUESTION | --shell]      as `sluice demo --help` says
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
# The image has programs of the same build.
export PROFILE=dev
# Removed from the environment before any program starts, dockerd and build scripts included.
KEY=${LITELLM_MASTER_KEY:-}
unset LITELLM_MASTER_KEY

# Stops the Docker daemon if it did not run before.
stop_docker() {
  if [[ -d /run/systemd/system ]] && systemctl --quiet is-active docker; then
    systemctl stop docker.socket docker
  else
    scripts/docker.sh stop
  fi
}

# part WHAT COMMAND...  Runs a part of the preparations, and prints its seconds unless it was there already.
part() {
  local what=$1 began=$SECONDS
  shift
  "$@"
  ((SECONDS - began < 2)) || echo "demo: $what: $((SECONDS - began)) s" >&2
}

build() {
  local quiet=--quiet
  [[ ! -t 2 ]] || quiet=
  cargo build ${quiet:+"$quiet"} --locked --package proxy --package runner-cli --bin sluice-proxy --bin sluice
}

scripts/docker.sh status >/dev/null 2>&1 || trap stop_docker EXIT
if [[ ! -e $CACHE/demo.done ]]; then
  echo 'demo: the first time takes some minutes: packages, programs, an image; later a few seconds' >&2
fi
part 'packages, the engine and the base image' scripts/setup.sh base
part 'programs' build
part 'the sandbox image' scripts/setup.sh sandbox
mkdir -p "$CACHE"
touch "$CACHE/demo.done"
LITELLM_MASTER_KEY=$KEY "${CARGO_TARGET_DIR:-target}/debug/sluice" demo "$@"
