#!/usr/bin/env bash
# Checks what CI has no time for: that two builds of a release, in directories of their own, pack into the same files, and that
# the static programs look up names on a bare Debian of each suite, also one with another C library than that of the build.
# Writes the sums to FILE.
#
# usage: prove-dist.sh [FILE]         tests/records/dist.json unless FILE is given; both builds take half an hour
#        prove-dist.sh names BIN_DIR  looks up names only, with the programs of BIN_DIR
# SUITES="bookworm trixie" are the suites of Debian.
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
read -ra SUITES <<<"${SUITES:-bookworm trixie}"
# Modules of the name service that a static program cannot link: systems with systemd-resolved have them.
MODULES=(libnss-myhostname libnss-resolve)
NAME=model.test
# shellcheck source=scripts/bare-root.sh
source scripts/bare-root.sh
WORK=$(mktemp -d /tmp/prove-dist.XXXXXX)
trap 'kill $(jobs -p) 2>/dev/null || true; rm -rf --one-file-system "$WORK"' EXIT

# serve_models  Starts a model API with one model, and sets ADDRESS to its port.
serve_models() {
  mkdir -p "$WORK/api/v1"
  echo '{"object":"list","data":[{"id":"m","object":"model"}]}' >"$WORK/api/v1/models"
  coproc SERVER { exec python3 -u -m http.server --bind 127.0.0.1 --directory "$WORK/api" 0 2>/dev/null; }
  read -r _ _ _ _ _ ADDRESS _ <&"${SERVER[0]}"
}

# look_up ROOT HOST [NSSWITCH]  Lets `sluice init`, by the data plane, ask the model API at a name of the host.
look_up() {
  local said
  rm -rf "$1/etc/sluicegate"
  [[ -z ${3:-} ]] || echo "hosts: $3" >"$1/etc/nsswitch.conf"
  said=$(LITELLM_MASTER_KEY=sk-prove unshare --mount --pid --fork --mount-proc="$1/proc" \
    chroot "$1" sluice init --upstream "http://$2:$ADDRESS" --model m 2>&1) ||
    die "$2 is not found in ${1##*/}${3:+ with $3}: $said"
  grep -q 'wrote .*/sluice.toml' <<<"$said" || die "sluice init said: $said"
}

# add_modules ROOT  Unpacks modules of the name service. They cannot be configured where no systemd runs.
add_modules() {
  local package
  chroot "$1" sh -c 'cd /tmp && apt-get download -qq "$@"' sh "${MODULES[@]}" 2>/dev/null
  for package in "${MODULES[@]}"; do dpkg-deb --extract "$1/tmp/${package}"_*.deb "$1"; done
}

# prove_names BIN_DIR  Looks up names in the hosts file of each suite, with each configuration of the name service.
prove_names() {
  local bin=$1 modules
  serve_models
  for SUITE in "${SUITES[@]}"; do
    ROOT=$WORK/$SUITE
    mkdir "$ROOT"
    write_root
    add_modules "$ROOT"
    install -t "$ROOT/usr/bin" "$bin/sluice" "$bin/sluice-proxy"
    echo "127.0.0.1 localhost $NAME" >"$ROOT/etc/hosts"
    for modules in '' 'files dns' 'files myhostname resolve [!UNAVAIL=return] dns' 'myhostname resolve files'; do
      look_up "$ROOT" localhost "$modules"
      look_up "$ROOT" "$NAME" "$modules"
    done
    if (look_up "$ROOT" absent.invalid 'files') 2>/dev/null; then die 'the control: a name that is nowhere is found'; fi
    say "$SUITE: names are looked up beside glibc $(chroot "$ROOT" ldd --version | sed -n '1s/.* //p')"
  done
}

# build DIR  Builds and packs everything in a build directory of its own.
build() {
  local programs
  export CARGO_TARGET_DIR=$WORK/$1/target
  programs=$(scripts/dist.sh programs)
  IMAGES='' scripts/dist.sh pack "$programs" "$WORK/$1/dist"
}

prove_builds() {
  local file=$1 one programs sums
  scripts/web.sh build
  for one in first second; do
    say "the $one build ..."
    mkdir "$WORK/$one"
    build "$one"
  done
  programs=$WORK/first/target/images/release
  diff "$WORK"/{first,second}/dist/SHA256SUMS >&2 || die 'two builds gave other files, see above'
  prove_names "$programs"
  sums=$(sed -E 's/([^ ]+)  (.*)/    "\2": "\1"/' "$WORK/first/dist/SHA256SUMS" | paste -sd , | sed 's/,/,\n/g')
  cat >"$file" <<JSON
{
  "command": "scripts/prove-dist.sh",
  "commit": "$(git rev-parse --short=12 HEAD)",
  "date": "$(date +%F)",
  "suites": ["${SUITES[0]}"$(printf ', "%s"' "${SUITES[@]:1}")],
  "sums": {
$sums
  }
}
JSON
  say "wrote $file"
}

case $#:${1:-} in
  2:names) prove_names "$(realpath "$2")" ;;
  0: | 1:*) prove_builds "$(realpath "${1:-tests/records/dist.json}")" ;;
  *) sed -n '6,8s/^# //p' "$0" >&2; exit 64 ;;
esac
