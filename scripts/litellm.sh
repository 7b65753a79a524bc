#!/usr/bin/env bash
# Installs a pinned LiteLLM, the real upstream, into its own Python environment, and runs it in the foreground. For tests and
# demonstrations on one machine: no database, no Admin UI, no downloads at run time. Does not deploy LiteLLM for production,
# where it is a separate service with Postgres.
set -euo pipefail

VERSION=1.106.2

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
VENV=$CACHE/litellm-$VERSION

usage() {
  echo "usage: scripts/litellm.sh install | run PORT CONFIG | json FILE" >&2
  exit 64
}

run() {
  local port=$1 config=$2 folder
  [[ -e $VENV/.ok ]] || die "LiteLLM $VERSION is not installed: run scripts/setup.sh litellm"
  [[ -r $config ]] || die "cannot read the configuration $config"
  folder=$(cd "$(dirname "$config")" && pwd)
  # Each LITELLM_LOCAL_* disables one download at start. Without a network, LiteLLM retries it for seconds.
  export LITELLM_LOCAL_MODEL_COST_MAP=True LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS=True LITELLM_LOCAL_BLOG_POSTS=True
  export LITELLM_LOCAL_POLICY_TEMPLATES=True LITELLM_LOCAL_AUTOROUTER_PRESETS=True
  export DISABLE_ADMIN_UI=True LITELLM_LOG=${LITELLM_LOG:-ERROR}
  export NO_PROXY=127.0.0.1,localhost no_proxy=127.0.0.1,localhost
  export PYTHONFAULTHANDLER=1      # logs a traceback of a crash in an extension
  export PYTHONDONTWRITEBYTECODE=1 # pip compiled the packages; keeps the repository clean
  export PYTHONPATH=$folder${PYTHONPATH:+:$PYTHONPATH} # the configuration's callbacks are in its directory
  exec "$VENV/bin/litellm" --config "$config" --host 127.0.0.1 --port "$port" --num_workers 1
}

case ${1:-} in
  install)
    [[ $# -eq 1 ]] || usage
    once "$VENV" "LiteLLM $VERSION (about 750 MB, one minute)" python_packages "$VENV" "litellm[proxy]==$VERSION"
    ;;
  run) [[ $# -eq 3 ]] || usage; run "$2" "$3" ;;
  json) # prints a YAML file as JSON, for tests
    [[ $# -eq 2 ]] || usage
    exec "$VENV/bin/python" -c 'import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)' "$2"
    ;;
  *) usage ;;
esac
