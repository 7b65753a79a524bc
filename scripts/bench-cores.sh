#!/usr/bin/env bash
# Builds target/bench-cores.tar.gz: the workloads threads-* for a machine with many cores on which nothing can be installed.
# bench and sluice-proxy are linked statically. nginx and HAProxy are measured if the machine has them.
#
# usage: bench-cores.sh [BEFORE]      BEFORE: another, static build of sluice-proxy to measure beside this one
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
BEFORE=${1:-}
OUT=${CARGO_TARGET_DIR:-target}
TARGET=$(rustc -vV | sed -n 's/^host: //p')

die() { echo "bench-cores: error: $*" >&2; exit 1; }

[[ $TARGET == *-linux-gnu ]] || die "static binaries are built on Linux with glibc, not on $TARGET"
# An explicit target keeps the flag from procedural macros, which cannot be static.
RUSTFLAGS='-C target-feature=+crt-static' \
  cargo build --quiet --locked --release -p proxy -p bench --bins --target "$TARGET"

dir=$(mktemp -d)
# shellcheck disable=SC2064 # the path is known now
trap "rm -rf '$dir'" EXIT
mkdir "$dir/bench-cores"
cp "$OUT/$TARGET/release/bench" "$OUT/$TARGET/release/sluice-proxy" "$dir/bench-cores"
[[ -z $BEFORE ]] || cp "$BEFORE" "$dir/bench-cores/sluice-proxy.before"
strip --strip-debug "$dir"/bench-cores/*
cat >"$dir/bench-cores/run.sh" <<'RUN'
#!/bin/sh
# Measures threads-1, threads-2, ... up to this machine's cores; tables go to stdout and results/tables.md, all rounds to
# results/raw.json. Arguments go to `bench run`, such as --rounds 3 or --spin.
set -eu
cd "$(dirname "$0")"
before=
[ ! -e sluice-proxy.before ] || before="--before $PWD/sluice-proxy.before"
# shellcheck disable=SC2086 # two words, or none
exec ./bench run --workloads 'threads-*' --results results $before "$@"
RUN
chmod 0755 "$dir/bench-cores/run.sh"
tar -C "$dir" -czf "$OUT/bench-cores.tar.gz" bench-cores
echo "bench-cores: $OUT/bench-cores.tar.gz; there: tar xzf bench-cores.tar.gz && bench-cores/run.sh" >&2
