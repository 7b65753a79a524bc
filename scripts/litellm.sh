#!/usr/bin/env bash
# LiteLLM, the real upstream, for tests and demonstrations on one machine: installs one pinned version into a Python
# environment of its own and runs it in the foreground. No database, no Admin UI, nothing fetched at run time.
# Not how LiteLLM is deployed in production: there it is a service of its own with Postgres behind it.
set -euo pipefail

VERSION=1.106.2
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
VENV=$CACHE/litellm-$VERSION
# Debian's own Python, for which this version resolves; a newer one found first in PATH may not have the wheels.
PYTHON=${PYTHON:-/usr/bin/python3}

say() { echo "litellm: $*" >&2; }
die() { echo "litellm: error: $*" >&2; exit 1; }

usage() {
  echo "usage: scripts/litellm.sh install | run PORT CONFIG" >&2
  exit 64
}

install() {
  [[ -e $VENV/.ok ]] && return
  "$PYTHON" -c 'import ensurepip' 2>/dev/null ||
    die "$PYTHON cannot make environments: install the Debian package python3-venv (scripts/setup.sh litellm does)"
  mkdir -p "$CACHE"
  exec 9>"$VENV.lock"
  flock 9
  [[ -e $VENV/.ok ]] && return # somebody else installed it while this one waited
  say "installing LiteLLM $VERSION into $VENV (about 750 MB, one minute) ..."
  # An environment cannot be moved once made, so it is made in place and the stamp, written last, makes it count.
  rm -rf "$VENV"
  "$PYTHON" -m venv "$VENV"
  "$VENV/bin/pip" install --quiet --no-input --disable-pip-version-check "litellm[proxy]==$VERSION" ||
    die "pip could not install litellm[proxy]==$VERSION (is the Python package index reachable?)"
  touch "$VENV/.ok"
}

run() {
  local port=$1 config=$2 folder
  [[ -e $VENV/.ok ]] || die "LiteLLM $VERSION is not installed: run scripts/setup.sh litellm"
  [[ -r $config ]] || die "cannot read the configuration $config"
  folder=$(cd "$(dirname "$config")" && pwd)
  # Each LITELLM_LOCAL_* switches off one download at start that would be retried for seconds without a network.
  export LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS=True LITELLM_LOCAL_BLOG_POSTS=True
  export LITELLM_LOCAL_POLICY_TEMPLATES=True LITELLM_LOCAL_AUTOROUTER_PRESETS=True
  export DISABLE_ADMIN_UI=True LITELLM_LOG=${LITELLM_LOG:-ERROR}
  export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
  export PYTHONDONTWRITEBYTECODE=1 # pip compiled the packages; nothing is to appear in the repository
  export PYTHONPATH=$folder${PYTHONPATH:+:$PYTHONPATH} # the configuration's callbacks lie beside it
  exec "$VENV/bin/litellm" --config "$config" --host 127.0.0.1 --port "$port" --num_workers 1
}

case ${1:-} in
  install) [[ $# -eq 1 ]] || usage; install ;;
  run) [[ $# -eq 3 ]] || usage; run "$2" "$3" ;;
  *) usage ;;
esac
