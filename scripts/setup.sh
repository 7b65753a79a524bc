#!/usr/bin/env bash
# Puts what demonstrations and tests need onto a bare Debian 12 with Rust: packages, a running Docker daemon, sandbox
# images, LiteLLM, cargo tools. Uses package registries only and installs only what is missing. Not for production
# hosts: there the engine, the images and LiteLLM are somebody's considered choice.
#
# usage: setup.sh [all|docker|images|litellm|tools]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
CARGO_DENY=0.20.2
CARGO_NEXTEST=0.9.143

say() { echo "setup: $*" >&2; }
die() { echo "setup: error: $*" >&2; exit 1; }

# packages STEP WHAT COMMAND:PACKAGE...  Judged by the command, not by dpkg: a newer one may come from elsewhere.
packages() {
  local step=$1 what=$2 pair missing=()
  shift 2
  for pair in "$@"; do
    command -v "${pair%:*}" >/dev/null || missing+=("${pair#*:}")
  done
  [[ ${#missing[@]} -eq 0 ]] || apt_install "$step" "$what" "${missing[@]}"
}

apt_install() {
  local step=$1 what=$2 log
  shift 2
  echo "$step: installing $what from Debian packages ($*) ..." >&2
  [[ $EUID -eq 0 ]] || die "installing packages needs root"
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  if ! { apt-get update -q && apt-get install -q -y --no-install-recommends "$@"; } >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install: $* (see above)"
  fi
  rm -f "$log"
}

# The tests start an nginx of their own. Debian's package would start one as a service on port 80: policy-rc.d is
# Debian's way to forbid that during the installation; a machine that has such a policy already keeps its own.
install_nginx() {
  local policy=/usr/sbin/policy-rc.d
  command -v nginx >/dev/null && return
  [[ $EUID -eq 0 ]] || die "installing packages needs root"
  if [[ ! -e $policy ]]; then
    # shellcheck disable=SC2064 # the path is known now and gone by then
    trap "rm -f $policy" EXIT
    cat >$policy <<'POLICY'
#!/bin/sh
[ "$1" != nginx ] || exit 101
POLICY
    chmod 0755 $policy
    apt_install tools "nginx" nginx-light
    rm -f $policy
    trap - EXIT
  else
    apt_install tools "nginx" nginx-light
  fi
  if [[ -d /run/systemd/system ]]; then
    systemctl disable --quiet nginx # nor after the next start of the machine
  fi
}

cargo_tool() {
  local name=$1 version=$2
  shift 2
  command -v cargo >/dev/null || die "cargo is missing: install Rust with rustup first"
  say "compiling $name $version into $CACHE/cargo (minutes) ..."
  cargo install --quiet "$name@$version" --locked --root "$CACHE/cargo" "$@" || die "could not install $name"
}

docker_() {
  packages docker "the engine" dockerd:docker.io tini:tini
  scripts/docker.sh start
}

images() {
  docker_
  if [[ -z ${BASE_IMAGE:-} ]]; then
    packages images "what builds the base image" debootstrap:debootstrap npm:npm
  fi
  scripts/images.sh
}

litellm() {
  /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || apt_install litellm "Python environments" python3-venv
  scripts/litellm.sh install
}

tools() {
  packages tools "what tests use" curl:curl git:git ip:iproute2 jq:jq node:nodejs shellcheck:shellcheck socat:socat
  install_nginx
  # Lints only: the quick unoptimised build is good enough for cargo-deny.
  [[ -x $CACHE/cargo/bin/cargo-deny && $("$CACHE/cargo/bin/cargo-deny" --version) == "cargo-deny $CARGO_DENY" ]] ||
    cargo_tool cargo-deny "$CARGO_DENY" --profile dev
  command -v cargo-nextest >/dev/null || [[ -x $CACHE/cargo/bin/cargo-nextest ]] ||
    cargo_tool cargo-nextest "$CARGO_NEXTEST"
}

case "$#:${1:-all}" in
  [01]:all) tools; images; litellm ;;
  1:docker) docker_ ;;
  1:images | 1:litellm | 1:tools) "$1" ;;
  *) echo "usage: scripts/setup.sh [all|docker|images|litellm|tools]" >&2; exit 64 ;;
esac
