#!/usr/bin/env bash
# Builds missing sandbox images. An image's tag is the fingerprint of its inputs, so an existing image is up to date.
# Does not push images, and does not pull any, except that Docker finds the BASE_IMAGE of the environment.
# services/proxy-image/build.sh builds the data plane's image.
#
# usage: images.sh [runtime|openclaw|git-sync|--print]     without an argument, builds all; --print only prints the
#                                                          references, as lines name=reference
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
RUNTIME=services/sandbox-runtime

say() { echo "images: $*" >&2; }
die() { echo "images: error: $*" >&2; exit 1; }

# Prints a short hash over files and the image's other inputs.
fingerprint() {
  local inputs=$1
  shift
  { sha256sum "$@"; echo "$inputs"; } | sha256sum | cut -c 1-12
}

exists() { docker image inspect "$1" >/dev/null 2>&1; }

build_runtime() {
  local program tool context
  say "building $runtime on $base ..."
  program=$(services/sandbox-init/build.sh) || die "could not build sandbox-init (see above)"
  tool=$(services/cogni-tool/build.sh) || die "could not build cogni-tool (see above)"
  context=$(mktemp -d)
  # shellcheck disable=SC2064 # the path is known now
  trap "rm -rf '$context'" EXIT
  install -D -m 0755 "$program" "$context/init/sandbox-init"
  install -D -m 0755 "$tool" "$context/init/cogni-tool"
  cp -r "$RUNTIME"/{Dockerfile,entrypoint.sh,agent} "$context"
  # DOCKER_BUILDKIT=0: Debian's Docker has no BuildKit, and newer clients warn about its absence at length.
  if ! DOCKER_BUILDKIT=0 docker build --build-arg "BASE_IMAGE=$base" --tag "$runtime" "$context" >"$context/log" 2>&1
  then
    tail -n 20 "$context/log" >&2
    die "could not build $runtime (see above)"
  fi
}

begin() {
  docker version --format '{{.Server.Version}}' >/dev/null 2>&1 ||
    die "no Docker daemon answers: run scripts/docker.sh start (not installed: scripts/setup.sh docker)"
  mkdir -p "$CACHE"
  exec 9>"$CACHE/images.lock" # concurrent builds would do the same work twice
  flock 9
  [[ -n ${BASE_IMAGE:-} ]] || services/base-image/build.sh >/dev/null
}

runtime() {
  exists "$runtime" || build_runtime
  docker tag "$runtime" sluicegate/sandbox-runtime:latest
}

openclaw() { BASE_IMAGE=$base services/sandbox-openclaw/build.sh "$@"; }

git_sync() { BASE_IMAGE=$base services/git-sync/build.sh "$@"; }

base=${BASE_IMAGE:-$(services/base-image/build.sh --print)}
programs="$(services/sandbox-init/build.sh --print) $(services/cogni-tool/build.sh --print)"
runtime=sluicegate/sandbox-runtime:$(fingerprint "$base $programs" "$RUNTIME"/{Dockerfile,entrypoint.sh,agent/run.mjs})

case ${1:-} in
  '') begin; runtime; git_sync >/dev/null; openclaw >/dev/null ;;
  runtime) begin; runtime ;;
  openclaw) begin; openclaw >/dev/null ;;
  git-sync) begin; git_sync >/dev/null ;;
  --print)
    printf '%s\n' "base=$base" "sandbox-runtime=$runtime" "sandbox-openclaw=$(openclaw --print)" \
      "git-sync=$(git_sync --print)" \
      "proxy=$(services/proxy-image/build.sh --print)"
    ;;
  *) echo "usage: scripts/images.sh [runtime|openclaw|git-sync|--print]" >&2; exit 64 ;;
esac
