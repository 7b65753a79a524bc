#!/usr/bin/env bash
# Makes what users install without a compiler: an archive of the programs, a Debian package, a Python wheel, the sandbox images, a
# list of the contents, and the sums of all of them. The same programs and the same commit give the same bytes.
#
# usage: dist.sh programs              builds the programs, linked statically, and prints their directory; PROFILE=release
#        dist.sh pack BIN_DIR OUT_DIR  packs the programs of BIN_DIR, and signs; IMAGES="NAME ..." are the images to save,
#                                      LEVEL=6 compresses as gzip does
#        dist.sh sign OUT_DIR          signs the sums with SIGNING_KEY=FILE, an Ed25519 key, or says how
#        dist.sh check BIN_DIR         packs twice, from two places, and compares
set -euo pipefail
umask 022

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PROFILE=${PROFILE:-release}
# Debian's Python: one from PATH may compress differently.
PYTHON=${PYTHON:-/usr/bin/python3}
export LEVEL=${LEVEL:-6}
SUMS=SHA256SUMS
IMAGES=${IMAGES-sluicegate/sandbox-runtime:latest sluicegate/sandbox-openclaw:latest sluicegate/git-sync:latest}

say() { echo "dist: $*" >&2; }
die() { echo "dist: error: $*" >&2; exit 1; }
usage() { sed -n '5,10s/^# //p' "$0" >&2; exit 64; }
# shellcheck source=services/static-program.sh
source services/static-program.sh

# Builds the programs of an installation. Others of the machine's build directory are not touched by packing.
build_programs() {
  local package static
  for package in sandbox-init cogni-tool git-sync proxy:sluice-proxy runner-cli:sluice; do
    static=$(static_program "${package%:*}" "${package#*:}")
  done
  echo "${static%/*}"
}

# pack BIN_DIR OUT_DIR  Makes every artifact.
pack() {
  local bin out=$2 version name tree file said
  # Not for builds: C libraries would be compiled again for it.
  export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
  bin=$(realpath "$1")
  [[ -x $bin/sluice ]] || die "no program $bin/sluice: \`make dist\` builds it"
  mkdir -p "$out"
  rm -f "$out"/sluicegate[-_]* "$out/$SUMS"{,.sig}
  version=$("$bin/sluice" --version | cut -d ' ' -f 2)
  name=sluicegate-$version-linux-$(uname -m)
  for file in sandbox-init cogni-tool git-sync; do # of the same build
    [[ ! -x $bin/$file ]] || export "$(tr a-z- A-Z_ <<<"$file")=$bin/$file"
  done
  tree=$(mktemp -d)
  # shellcheck disable=SC2064 # the directory of this call
  trap "rm -rf '$tree'" EXIT
  said=$(PREFIX=/usr/local scripts/package.sh install "$bin" "$tree" 2>&1) || die "$said"
  mv "$tree/usr/local" "$tree/$name"
  archive "$tree" "$name" >"$out/$name.tar.gz"
  scripts/package.sh deb "$bin" "$out" >/dev/null
  "$PYTHON" scripts/dist/wheel.py "$tree/$name" "$out" "$version"
  "$PYTHON" scripts/dist/sbom.py "$version" >"$out/sluicegate-$version.cdx.json"
  save_images "$out/$name"
  (cd "$out" && sha256sum -- sluicegate[-_]* >$SUMS)
}

# archive DIR NAME  Prints a compressed archive of DIR/NAME, without a trace of this machine.
archive() {
  tar -C "$1" --sort=name --format=gnu --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" -cf - "$2" | gzip -n"$LEVEL"
}

# save_images START  Writes one archive for each image: Docker gives a shared one in another order each time.
save_images() {
  local image file
  for image in $IMAGES; do
    file=${image##*/}
    docker save "$image" | gzip -n"$LEVEL" >"$1-${file%:*}.tar.gz" || die "docker cannot save $image: scripts/images.sh builds it"
  done
}

# sign OUT_DIR  Signs the sums with the key of a file, or says how.
sign() {
  if [[ -z ${SIGNING_KEY:-} ]]; then
    say "unsigned: \`make dist SIGNING_KEY=FILE\` signs; \`openssl genpkey -algorithm ed25519 -out FILE\` makes a key"
    return
  fi
  openssl pkeyutl -sign -rawin -inkey "$SIGNING_KEY" -in "$1/$SUMS" -out "$1/$SUMS.sig" ||
    die "cannot sign with $SIGNING_KEY: it has to be an Ed25519 key, which \`openssl genpkey -algorithm ed25519\` makes"
  say "signed; to verify there, with the public key that \`openssl pkey -in FILE -pubout -out sluicegate.pub\` writes:"
  say "  openssl pkeyutl -verify -rawin -pubin -inkey sluicegate.pub -in $SUMS -sigfile $SUMS.sig"
}

# check BIN_DIR  Packs twice, and shows what differs. Times, modes and the place of the programs may.
check() {
  local dir
  dir=$(mktemp -d)
  # shellcheck disable=SC2064 # the directory of this call
  trap "rm -rf '$dir'" EXIT
  cp -r "$1" "$dir/programs"
  chmod 0700 "$dir"/programs/*
  (pack "$1" "$dir/first")
  (pack "$dir/programs" "$dir/second")
  diff "$dir/first/$SUMS" "$dir/second/$SUMS" >&2 || die 'the same programs gave other files, see above'
  cat "$dir/first/$SUMS"
}

case $#:${1:-} in
  1:programs) build_programs ;;
  3:pack)
    pack "$2" "$3"
    sign "$3"
    say "in $3; to verify there: \`sha256sum --check $SUMS\`"
    ;;
  2:sign) sign "$2" ;;
  2:check) check "$2" ;;
  *) usage ;;
esac
