#!/usr/bin/env bash
# Runs `make demo`, then `make test`, on a bare Debian that has Rust and make, as someone does who has just cloned the repository:
# an own root file system, own mounts and processes, an own Docker, an empty cache. Takes the last commit. Writes the seconds
# and CPU seconds of both to FILE. The CPU seconds are the machine's: nothing else should run.
#
# usage: prove-bare.sh [FILE]      tests/records/bare.json unless FILE is given
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/bare-root.sh
source scripts/bare-root.sh
# Prints the processor's seconds that this machine has spent since it started.
cpu_seconds() { awk -v ticks="$(getconf CLK_TCK)" '/^cpu / { printf "%d", ($2 + $3 + $4 + $7 + $8) / ticks }' /proc/stat; }

# Makes $ROOT the root of this mount namespace. A changed root would not do: `docker exec` enters the namespace's own.
pivot() {
  cd "$ROOT"
  mkdir before
  pivot_root . before
  cd /
  umount --lazy before
  rmdir before
  ROOT=/
}

# In the new namespaces: mounts what a machine has, and runs both commands. Their mounts and processes end with this one.
inside() {
  local command code began cpu results=()
  exec 3>"$FILE"
  mount --bind "$ROOT" "$ROOT"
  bind_rust "$RUSTUP" "$CARGO/bin"
  mount -t proc proc "$ROOT/proc"
  mount --rbind /sys "$ROOT/sys"
  mount --rbind /dev "$ROOT/dev"
  pivot
  for command in demo test; do
    began=$SECONDS cpu=$(cpu_seconds) code=0
    within make -C /repository "$command" >&2 </dev/null || code=$?
    results+=("$(printf '{ "command": "make %s", "exit": %d, "seconds": %d, "cpu_seconds": %d }' \
      "$command" "$code" $((SECONDS - began)) $(($(cpu_seconds) - cpu)))")
    say "make $command: exit $code after $((SECONDS - began)) s"
    [[ $code -eq 0 ]] || break
  done
  within /repository/scripts/docker.sh stop >&2 || true
  cat >&3 <<JSON
{
  "command": "scripts/prove-bare.sh",
  "commit": "$(within git -C /repository rev-parse --short=12 HEAD)",
  "date": "$(date +%F)",
  "suite": "$SUITE",
  "machine": "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1), $(nproc) cores",
  "commands": [$(IFS=,; echo "${results[*]}")]
}
JSON
  [[ $code -eq 0 ]]
}

if [[ ${1:-} == --inside ]]; then
  FILE=$2
  inside
  exit
fi
FILE=$(realpath "${1:-tests/records/bare.json}")
if scripts/docker.sh status >/dev/null 2>&1; then die "stop this machine's Docker first: scripts/docker.sh stop"; fi
ROOT=$(mktemp -d /tmp/bare-debian.XXXXXX)
trap 'rm -rf --one-file-system "$ROOT"' EXIT
write_root
chroot "$ROOT" apt-get install -qq --yes make git >/dev/null
git clone --quiet --no-hardlinks . "$ROOT/repository"
ROOT=$ROOT unshare --mount --pid --fork "$PWD/scripts/prove-bare.sh" --inside "$FILE"
say "wrote $FILE"
