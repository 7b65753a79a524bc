# Sourced by the scripts that put something from a package registry into the cache: installed once, whole or not at all.
# Which versions, and what is run of them, each of those scripts says itself.
# shellcheck shell=bash
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
# Debian's own Python, for which the pinned versions resolve; a newer one found first in PATH may not have the wheels.
PYTHON=${PYTHON:-/usr/bin/python3}
PROGRAM=${0##*/}

say() { echo "${PROGRAM%.sh}: $*" >&2; }
die() { say "error: $*"; exit 1; }

# once FOLDER WHAT COMMAND...  Has COMMAND fill the empty FOLDER, unless that was done before.
once() {
  local folder=$1 what=$2
  shift 2
  [[ -e $folder/.ok ]] && return
  mkdir -p "$CACHE"
  exec 9>"$folder.lock"
  flock 9
  [[ -e $folder/.ok ]] && return # somebody else installed it while this one waited
  say "installing $what into $folder ..."
  # In place, because a Python environment cannot be moved once made; the stamp, written last, makes it count.
  rm -rf "$folder"
  mkdir "$folder"
  "$@"
  touch "$folder/.ok"
}

# python_packages FOLDER PACKAGE...  Makes a Python environment with them.
python_packages() {
  local folder=$1
  shift
  "$PYTHON" -c 'import ensurepip' 2>/dev/null ||
    die "$PYTHON cannot make environments: install the Debian package python3-venv (scripts/setup.sh does)"
  "$PYTHON" -m venv "$folder"
  "$folder/bin/pip" install --quiet --no-input --disable-pip-version-check "$@" ||
    die "pip could not install $* (is the Python package index reachable?)"
}

# npm_packages FOLDER PACKAGE...  No packages' own scripts: nothing here needs what they build. A package.json that is
# there already is kept, with its overrides.
npm_packages() {
  local folder=$1 log=$1.log
  shift
  command -v npm >/dev/null || die "npm is missing: install the Debian package npm (scripts/setup.sh does)"
  [[ -e $folder/package.json ]] || echo '{ "private": true }' >"$folder/package.json"
  npm install --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "npm could not install $* (is the npm registry reachable?)"
  }
  rm "$log"
}
