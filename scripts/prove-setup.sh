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
# shellcheck source=scripts/bare-root.sh
source scripts/bare-root.sh
scripts/docker.sh start
ROOT=$(mktemp -d /tmp/bare-debian.XXXXXX)

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

make_root() {
  write_root
  bind_rust "$RUSTUP" "$CARGO"
  touch "$ROOT/run/docker.sock"
  mount --bind "$PWD" "$ROOT/repository"
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
