#!/usr/bin/env bash
# Installs built programs with their manual pages, completions and systemd units, removes them, or makes a Debian package.
#
# usage: package.sh install BIN_DIR [DESTDIR]   below PREFIX, /usr if unset
#        package.sh uninstall [DESTDIR]         removes what `install` has put there; PURGE=yes also configuration, state,
#                                               images and the data plane's user, but not below a DESTDIR
#        package.sh deb BIN_DIR OUT_DIR         prints the package's path; REVISION=1 is the Debian revision,
#                                               COMPRESSION=xz the method of dpkg-deb
set -euo pipefail
umask 022

cd "$(dirname "${BASH_SOURCE[0]}")/.."
PREFIX=${PREFIX:-/usr}
REVISION=${REVISION:-1}
PROFILE=${PROFILE:-release}

die() { echo "package: error: $*" >&2; exit 1; }
# shellcheck source=services/static-program.sh
source services/static-program.sh
usage() { sed -n '4,8s/^# //p' "$0" >&2; exit 64; }

# check_programs BIN_DIR  Refuses a directory without the programs.
check_programs() {
  local program
  for program in sluice sluice-proxy; do
    [[ -x $1/$program ]] || die "no program $1/$program: build it with \`cargo build --release --locked -p proxy -p runner-cli\`"
  done
}

# install_programs BIN_DIR DESTDIR  Copies all files to their places below DESTDIR$PREFIX.
install_programs() {
  local bin=$1 root=$2$PREFIX unit
  [[ $PREFIX == /* ]] || die "PREFIX=$PREFIX is not an absolute path, and units name one: PREFIX=$PWD/$PREFIX?"
  check_programs "$bin"
  install -D -m 0755 -t "$root/bin" "$bin/sluice" "$bin/sluice-proxy"
  install -D -m 0755 "${SANDBOX_INIT:-$(services/sandbox-init/build.sh)}" "$root/lib/sluicegate/sandbox-init"
  install -D -m 0755 "${COGNI_TOOL:-$(services/cogni-tool/build.sh)}" "$root/lib/sluicegate/cogni-tool"
  install -D -m 0755 "${GIT_SYNC:-$(static_program git-sync)}" "$root/lib/sluicegate/git-sync"
  install -d "$root/share/man/man1" "$root/share/man/man8" "$root/lib/systemd/system"
  "$bin/sluice" man "$root/share/man/man1"
  install -m 0644 platform/man/sluice-proxy.8 "$root/share/man/man8"
  for unit in platform/systemd/*.service; do # the units name /usr/bin
    sed "s#=/usr/bin/#=$PREFIX/bin/#" "$unit" >"$root/lib/systemd/system/${unit##*/}"
  done
  install -D -m 0644 platform/systemd/sluicegate.sysusers.conf "$root/lib/sysusers.d/sluicegate.conf"
  install -D -m 0644 -t "$root/share/doc/sluicegate" LICENSE README.md platform/config/sluice.example.toml \
    platform/config/sluice.schema.json
  install -d "$root/share/bash-completion/completions" "$root/share/zsh/vendor-completions" \
    "$root/share/fish/vendor_completions.d"
  "$bin/sluice" completions bash >"$root/share/bash-completion/completions/sluice"
  "$bin/sluice" completions zsh >"$root/share/zsh/vendor-completions/_sluice"
  "$bin/sluice" completions fish >"$root/share/fish/vendor_completions.d/sluice.fish"
}

# uninstall DESTDIR  Removes the files of install_programs, and stops the services first.
uninstall() {
  local root=$1$PREFIX unit
  if [[ -z $1 ]] && [[ -d /run/systemd/system ]]; then
    finish systemctl disable --now sluice.service sluice-proxy.service
  fi
  for unit in platform/systemd/*.service; do rm -f "$root/lib/systemd/system/${unit##*/}"; done
  rm -f "$root"/bin/{sluice,sluice-proxy} "$root"/share/man/man1/sluice{,-*}.1 "$root/share/man/man8/sluice-proxy.8" \
    "$root/lib/sysusers.d/sluicegate.conf" "$root/share/bash-completion/completions/sluice" \
    "$root/share/zsh/vendor-completions/_sluice" "$root/share/fish/vendor_completions.d/sluice.fish"
  rm -rf "$root/lib/sluicegate" "$root/share/doc/sluicegate" "$root/share/sluicegate"
  if [[ -z $1 && ${PURGE:-} == yes ]]; then
    platform/debian/postrm purge
  elif [[ -z $1 ]]; then
    echo "package: configuration, state and images stay; \`make uninstall PURGE=yes\` removes them, journal and receipts too" >&2
  fi
}

# activate  Makes the data plane's user, and lets systemd read the units. Names the commands that could not run.
activate() {
  finish systemd-sysusers "$PREFIX/lib/sysusers.d/sluicegate.conf"
  finish systemctl daemon-reload
}

# finish COMMAND...  Runs a command that may be absent or forbidden here.
finish() {
  if ! command -v "$1" >/dev/null || ! "$@"; then
    echo "package: to run it as a systemd service, still to do as root: \`$*\`" >&2
  fi
}

# make_deb BIN_DIR OUT_DIR  Makes the package and prints its path.
make_deb() {
  local bin=$1 out=$2 version staging deb depends='Depends: libc6 (>= 2.36), libgcc-s1'
  command -v dpkg-deb >/dev/null || die "dpkg-deb is missing: packages are made on Debian"
  check_programs "$bin"
  version=$("$bin/sluice" --version | cut -d ' ' -f 2)-$REVISION
  staging=$(mktemp -d)
  # shellcheck disable=SC2064 # the directory of this call
  trap "rm -rf '$staging'" EXIT
  # The package's root directory; mktemp closes it to other users.
  chmod 0755 "$staging"
  PREFIX=/usr install_programs "$bin" "$staging"
  strip "$staging/usr/bin/sluice" "$staging/usr/bin/sluice-proxy"
  [[ $(LC_ALL=C ldd "$bin/sluice" "$bin/sluice-proxy" 2>&1) == *'=>'* ]] || depends= # linked statically
  install -d "$staging/DEBIAN" "$out"
  cat >"$staging/DEBIAN/control" <<CONTROL
Package: sluicegate
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: Sluicegate maintainers <maintainers@sluicegate.invalid>
${depends:+$depends
}Recommends: e2fsprogs, mount, systemd, docker.io
Section: net
Priority: optional
Description: language models for untrusted coding agents
 Agents run in containers without a network. A proxy identifies each call,
 adds credentials and billing identity, meters, limits and journals it.
CONTROL
  install -m 0755 platform/debian/{postinst,prerm,postrm} "$staging/DEBIAN"
  deb=$out/sluicegate_${version}_$(dpkg --print-architecture).deb
  dpkg-deb -Z"${COMPRESSION:-xz}" --root-owner-group --build "$staging" "$deb" >/dev/null
  echo "$deb"
}

case ${1:-} in
  install)
    [[ $# -eq 2 || $# -eq 3 ]] || usage
    install_programs "$2" "${3:-}"
    # Below DESTDIR, files are staged for another machine.
    [[ -n ${3:-} ]] || activate
    echo "installed below ${3:-}$PREFIX; next: \`sluice init\`" >&2
    ;;
  uninstall) [[ $# -le 2 ]] || usage; uninstall "${2:-}" ;;
  deb) [[ $# -eq 3 ]] || usage; make_deb "$2" "$3" ;;
  *) usage ;;
esac
