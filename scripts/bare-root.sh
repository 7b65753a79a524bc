# shellcheck shell=bash
# Makes the root file system of a bare Debian and runs commands in it. To be sourced; scripts/prove-*.sh use it. The caller
# sets ROOT, an empty directory.
SUITE=bookworm
RUSTUP=${RUSTUP_HOME:-$HOME/.rustup}
CARGO=${CARGO_HOME:-$HOME/.cargo}

say() { echo "$(basename "$0" .sh): $*" >&2; }
die() { say "error: $*"; exit 1; }

# Writes a bare Debian into $ROOT, with this machine's certificates: its network may have one of its own.
write_root() {
  [[ $EUID -eq 0 ]] || die "a root file system of its own needs root"
  command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
  say "making a bare Debian $SUITE ..."
  chmod 755 "$ROOT" # other users reach nothing below a private root
  debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$ROOT" >/dev/null
  cp /etc/resolv.conf "$ROOT/etc"
  cp -L /etc/ssl/certs/ca-certificates.crt "$ROOT/etc/ssl/certs"
  mkdir -p "$ROOT/repository" "$ROOT$RUSTUP" "$ROOT$CARGO"
}

# bind_rust DIRECTORY...  Shows these directories of this machine in $ROOT, at their own paths, which toolchains may link to.
# They are unchangeable: a toolchain that seems to be absent would be replaced.
bind_rust() {
  local directory
  for directory in "$@"; do
    mkdir -p "$ROOT$directory"
    mount --bind "$directory" "$ROOT$directory"
    mount -o remount,bind,ro "$ROOT$directory"
  done
}

# within COMMAND...  Runs a command in $ROOT, with Rust, certificates, and nothing else of this machine.
within() {
  local certificates=/etc/ssl/certs/ca-certificates.crt
  chroot "$ROOT" env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive RUSTUP_HOME="$RUSTUP" CARGO_HOME="$CARGO" RUSTUP_AUTO_INSTALL=0 \
    PIP_CERT=$certificates NODE_EXTRA_CA_CERTS=$certificates SSL_CERT_FILE=$certificates \
    PATH="/root/.cache/sluicegate/bin:$CARGO/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "$@"
}
