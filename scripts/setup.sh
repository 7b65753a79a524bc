#!/usr/bin/env bash
# Prepares a Debian 12 with Rust for demonstrations and tests. Installs packages, a running Docker daemon, sandbox images,
# LiteLLM, OpenClaw, official SDKs and cargo tools. Uses package registries only and skips what is installed already.
# Not for production hosts: there an operator chooses the engine, the images, LiteLLM and OpenClaw.
#
# usage: setup.sh [all|docker|images|litellm|openclaw|sdks|tools|book]
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
CARGO_DENY=0.20.2
CARGO_FUZZ=0.13.2
MDBOOK=0.5.4
CARGO_NEXTEST=0.9.143

say() { echo "setup: $*" >&2; }
die() { echo "setup: error: $*" >&2; exit 1; }

# packages STEP WHAT COMMAND:PACKAGE...  Installs the packages of missing commands. Does not ask dpkg: a newer command may
# come from another source.
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

# Runs a command while policy-rc.d forbids Debian's packages to start their services. Tests and the benchmark start their own
# servers. An existing policy is kept.
without_services() {
  local policy=/usr/sbin/policy-rc.d
  if [[ -e $policy || $EUID -ne 0 ]]; then
    "$@"
    return
  fi
  # shellcheck disable=SC2064 # the path is known now and gone by then
  trap "rm -f $policy" EXIT
  cat >$policy <<'POLICY'
#!/bin/sh
case "$1" in nginx | haproxy | postgresql) exit 101 ;; esac
POLICY
  chmod 0755 $policy
  "$@"
  rm -f $policy
  trap - EXIT
}

servers() {
  local package missing=()
  command -v nginx >/dev/null || missing+=(nginx-light)
  command -v haproxy >/dev/null || missing+=(haproxy)
  [[ -e /usr/lib/nginx/modules/ngx_http_lua_module.so ]] || missing+=(libnginx-mod-http-lua)
  [[ -e /usr/share/lua/5.1/resty/core.lua ]] || missing+=(lua-resty-core)
  [[ -e /usr/lib/postgresql/15/bin/postgres ]] || missing+=(postgresql-15)
  [[ ${#missing[@]} -gt 0 ]] || return 0
  without_services apt_install tools "servers for tests and comparisons" "${missing[@]}"
  [[ -d /run/systemd/system ]] || return 0
  for package in "${missing[@]}"; do
    case $package in # do not start it at the next boot either
      nginx-light | haproxy) systemctl disable --quiet "${package%-light}" ;;
      postgresql-15) systemctl disable --quiet postgresql ;;
    esac
  done
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
    packages images "tools that build the base image" debootstrap:debootstrap npm:npm
  fi
  scripts/images.sh runtime
}

python_environments() {
  /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || apt_install "$1" "Python environments" python3-venv
}

litellm() {
  python_environments litellm
  scripts/litellm.sh install
}

openclaw() {
  packages openclaw "the installer of OpenClaw" npm:npm
  scripts/openclaw.sh install
  docker_
  scripts/images.sh openclaw
}

sdks() {
  python_environments sdks
  packages sdks "tools that install and run SDKs" npm:npm node:nodejs
  scripts/sdks.sh install
}

tools() {
  packages tools "test tools" curl:curl git:git ip:iproute2 jq:jq node:nodejs openssl:openssl \
    shellcheck:shellcheck socat:socat
  packages tools "benchmark tools" gnuplot:gnuplot-nox taskset:util-linux valgrind:valgrind
  servers
  # An unoptimised build is enough for cargo-deny and cargo-fuzz.
  [[ -x $CACHE/cargo/bin/cargo-deny && $("$CACHE/cargo/bin/cargo-deny" --version) == "cargo-deny $CARGO_DENY" ]] ||
    cargo_tool cargo-deny "$CARGO_DENY" --profile dev
  packages tools "the linker of fuzz targets" g++:g++
  [[ -x $CACHE/cargo/bin/cargo-fuzz && $("$CACHE/cargo/bin/cargo-fuzz" --version) == "cargo-fuzz $CARGO_FUZZ" ]] ||
    cargo_tool cargo-fuzz "$CARGO_FUZZ" --profile dev
  command -v cargo-nextest >/dev/null || [[ -x $CACHE/cargo/bin/cargo-nextest ]] ||
    cargo_tool cargo-nextest "$CARGO_NEXTEST"
}

book() {
  [[ -x $CACHE/cargo/bin/mdbook && $("$CACHE/cargo/bin/mdbook" --version) == "mdbook v$MDBOOK" ]] ||
    cargo_tool mdbook "$MDBOOK" --no-default-features --features search
}

case "$#:${1:-all}" in
  [01]:all) tools; images; litellm; openclaw; sdks ;;
  1:docker) docker_ ;;
  1:images | 1:litellm | 1:openclaw | 1:sdks | 1:tools | 1:book) "$1" ;;
  *) echo "usage: scripts/setup.sh [all|docker|images|litellm|openclaw|sdks|tools]" >&2; exit 64 ;;
esac
