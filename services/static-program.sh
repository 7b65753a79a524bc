# Builds a program of this workspace as one static binary, which runs in any image. The build scripts of services source it
# in the root of the repository, with PROFILE set and a function `die`.
# shellcheck shell=bash

# compile_name_service OBJECT  Compiles what lets a static program look up names by files and DNS alone. A module that the
# host's nsswitch.conf names, such as systemd's `resolve`, is loaded with the host's C library: beside another one than the
# program's own, it ends the program with SIGFPE.
compile_name_service() {
  command -v cc >/dev/null || die "cc is missing: install the Debian package build-essential (scripts/setup.sh does)"
  cc -x c -O2 -fPIC -c -o "$1" - <<'C'
extern int __nss_configure_lookup(const char *, const char *);
__attribute__((constructor)) static void load_no_modules(void) {
  __nss_configure_lookup("hosts", "files dns");
  __nss_configure_lookup("passwd", "files");
  __nss_configure_lookup("group", "files");
}
C
}

# static_program PACKAGE [PROGRAM]  Prints the path of the binary. PROGRAM has the package's name if it is absent.
static_program() {
  local package=$1 program=${2:-$1} host lock built=${CARGO_TARGET_DIR:-target}/$PROFILE/${2:-$1} static
  static=${CARGO_TARGET_DIR:-target}/images/$PROFILE/$program
  [[ $PROFILE != dev ]] || built=${CARGO_TARGET_DIR:-target}/debug/$program
  command -v cargo >/dev/null || die "cargo is missing: install Rust with rustup first"
  host=$(rustc -vV | sed -n 's/^host: //p')
  [[ $host == *-linux-gnu ]] || die "a static binary is built on Linux with glibc, not on $host"
  mkdir -p "${static%/*}"
  exec {lock}>"$static.lock"
  flock "$lock"
  compile_name_service "$static.o"
  for _ in 1 2 3; do
    # The program's own crate alone is given the flags, so its libraries are those of any other build of this profile.
    cargo rustc --quiet --locked -p "$package" --bin "$program" --profile "$PROFILE" -- \
      -C target-feature=+crt-static -C strip=symbols -C "link-arg=$(realpath "$static.o")" >&2
    install "$built" "$static.new"
    if [[ $(LC_ALL=C ldd "$static.new" 2>&1) == *'statically linked'* ]]; then
      mv -f "$static.new" "$static"
      exec {lock}>&-
      echo "$static"
      return
    fi
    # Another build has put the dynamic program back.
  done
  die "$program is linked dynamically: other builds came between"
}

# static_program_or_fingerprint NAME [--print]  Prints the path of the program that services/NAME has, or the fingerprint of
# its sources, which are those of the service and of platform/core.
static_program_or_fingerprint() {
  local name=$1 sources
  case ${2:-} in
    '') static_program "$name" ;;
    --print)
      sources=$(find "services/$name/src" "services/$name"/{Cargo.toml,build.sh} services/static-program.sh \
        platform/core/{src,Cargo.toml} Cargo.toml Cargo.lock rust-toolchain.toml -type f | LC_ALL=C sort)
      { xargs sha256sum <<<"$sources"; echo "$PROFILE"; } | sha256sum | cut -c 1-12
      ;;
    *) echo "usage: services/$name/build.sh [--print]" >&2; exit 64 ;;
  esac
}
