#!/usr/bin/env bash
# Checks that the set-up of each tier installs what its tests start: runs `scripts/setup.sh TIER` in a bare Debian, and looks up
# there each program that the tests of the tier name. A machine that has a package already hides a missing step; a bare one
# shows it. Docker is that of this machine. Writes the result to FILE.
#
# usage: prove-setup.sh [FILE]      tests/records/setup.json unless FILE is given; TIERS="check test" are the tiers
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
FILE=${1:-tests/records/setup.json}
read -ra TIERS <<<"${TIERS:-check test}"
SUITE=bookworm

say() { echo "prove-setup: $*" >&2; }
die() { say "error: $*"; exit 1; }

[[ $EUID -eq 0 ]] || die "a root file system of its own needs root"
command -v debootstrap >/dev/null || die "debootstrap is missing: apt-get install debootstrap"
scripts/docker.sh start
ROOT=$(mktemp -d /tmp/bare-debian.XXXXXX)
RUSTUP=${RUSTUP_HOME:-$HOME/.rustup}
CARGO=${CARGO_HOME:-$HOME/.cargo}

clean_up() {
  local point
  for point in repository "${RUSTUP#/}" "${CARGO#/}" run/docker.sock proc dev; do
    umount --recursive --lazy "$ROOT/$point" 2>/dev/null || true
  done
  # What is still mounted there belongs to this machine.
  ! grep -qF " $ROOT/" /proc/mounts || { say "mounts are left below $ROOT: remove it by hand"; return; }
  rm -rf --one-file-system "$ROOT"
}
trap clean_up EXIT

# within COMMAND...  Runs a command in the bare Debian, with this machine's Rust and certificates, and nothing else of it: its
# network may have a certificate of its own.
within() {
  local certificates=/etc/ssl/certs/ca-certificates.crt
  chroot "$ROOT" env -i HOME=/root LANG=C.UTF-8 DEBIAN_FRONTEND=noninteractive RUSTUP_HOME="$RUSTUP" CARGO_HOME="$CARGO" RUSTUP_AUTO_INSTALL=0 \
    PIP_CERT=$certificates NODE_EXTRA_CA_CERTS=$certificates SSL_CERT_FILE=$certificates \
    PATH="/root/.cache/sluicegate/bin:$CARGO/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin" "$@"
}

make_root() {
  local directory
  say "making a bare Debian $SUITE ..."
  debootstrap --variant=minbase --include=ca-certificates "$SUITE" "$ROOT" >/dev/null
  cp /etc/resolv.conf "$ROOT/etc"
  cp -L /etc/ssl/certs/ca-certificates.crt "$ROOT/etc/ssl/certs"
  mkdir -p "$ROOT/repository" "$ROOT$RUSTUP" "$ROOT$CARGO"
  touch "$ROOT/run/docker.sock"
  mount --bind "$PWD" "$ROOT/repository"
  # At their own paths, which toolchains may link to, and unchangeable: a toolchain that seems to be absent would be replaced.
  for directory in "$RUSTUP" "$CARGO"; do
    mount --bind "$directory" "$ROOT$directory"
    mount -o remount,bind,ro "$ROOT$directory"
  done
  mount --bind /var/run/docker.sock "$ROOT/run/docker.sock"
  mount -t proc proc "$ROOT/proc"
  mount --rbind --make-rslave /dev "$ROOT/dev"
}

# programs DIRECTORY...  Prints the programs that Rust sources start by a name of their own, or by a path of Debian's.
programs() {
  grep -rhoE 'Command::new\("(/usr/)?[a-z][a-z0-9._/-]*"\)' --include='*.rs' "$@" |
    sed -E 's/.*\("(.*)"\).*/\1/' | grep -vE '^(scripts|services)/' | sort -u
}

# missing TIER  Prints the programs of a tier that the bare Debian lacks.
missing() {
  local program places=(tests/processes tests/harness runner proxy platform gateway-bridge services)
  [[ $1 == check ]] || places+=(tests/containers tests/postgres)
  { programs "${places[@]}"; echo node; echo cargo-nextest; } | while read -r program; do
    case $program in
      docker | dockerd | prometheus | promtool) [[ $1 != check ]] || continue ;;
      systemd-analyze | limit | npm) continue ;; # the first is used where it is there; no test starts the others
    esac
    within which "$program" >/dev/null || echo "$program"
  done
}

make_root
results=()
for tier in "${TIERS[@]}"; do
  say "setting up $tier ..."
  before=$(missing "$tier" | paste -sd ' ' -)
  within /repository/scripts/setup.sh "$tier" >&2 || die "the set-up of $tier failed on a bare Debian"
  after=$(missing "$tier" | paste -sd ' ' -)
  [[ -n $before ]] || die "the control failed: a bare Debian has every program of $tier"
  results+=("$(printf '{ "tier": "%s", "missing_before": "%s", "missing_after": "%s" }' "$tier" "$before" "$after")")
  [[ -z $after ]] || die "the set-up of $tier leaves these missing: $after"
done
cat >"$FILE" <<JSON
{
  "command": "scripts/prove-setup.sh",
  "commit": "$(git rev-parse --short=12 HEAD)",
  "date": "$(date +%F)",
  "suite": "$SUITE",
  "tiers": [$(IFS=,; echo "${results[*]}")]
}
JSON
say "wrote $FILE"
