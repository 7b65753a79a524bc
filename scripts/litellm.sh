#!/usr/bin/env bash
# Installs a pinned LiteLLM, the real upstream, into its own Python environment, and runs it in the foreground. For tests and
# demonstrations on one machine: no Admin UI, no downloads at run time. With DATABASE_URL it has its real database, which
# `database` serves; scripts/litellm/README.md explains how that runs without Prisma's own programs.
# Does not deploy LiteLLM for production, where it is a separate service with Postgres.
set -euo pipefail

VERSION=1.106.2
PRISMA=0.15.0 # Prisma's Python client; scripts/litellm/package-lock.json pins its engine
NODEENV=1.10.0

# shellcheck source=scripts/install.sh
source "$(dirname "${BASH_SOURCE[0]}")/install.sh"
# shellcheck source=scripts/postgres.sh
source "$(dirname "${BASH_SOURCE[0]}")/postgres.sh"
VENV=$CACHE/litellm-$VERSION
DATABASE=$CACHE/litellm-database-$VERSION-$PRISMA
ENGINE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/litellm

usage() {
  echo "usage: scripts/litellm.sh install | run PORT CONFIG | database DIRECTORY | cluster | json FILE" >&2
  exit 64
}

# Installs Prisma's client beside LiteLLM, generates its code from LiteLLM's schema, and creates the cluster.
database_packages() {
  local packages
  "$VENV/bin/pip" install --quiet --no-input --disable-pip-version-check --no-deps --target "$DATABASE/python" \
    "prisma==$PRISMA" "nodeenv==$NODEENV" || die "pip could not install Prisma (is the Python package index reachable?)"
  npm_locked "$DATABASE" "$ENGINE"
  use_prisma
  packages=$("$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
  "$VENV/bin/python" -m prisma generate --schema "$packages/litellm/proxy/schema.prisma" >"$DATABASE/generate.log" 2>&1 ||
    die "Prisma could not generate its client: see $DATABASE/generate.log"
  create_cluster "$packages/litellm_proxy_extras/migrations"
}

use_prisma() {
  export PRISMA_BINARY_CACHE_DIR=$DATABASE PRISMA_HOME_DIR=$DATABASE CHECKPOINT_DISABLE=1
  export PRISMA_QUERY_ENGINE_BINARY=$ENGINE/query-engine PACKAGES=$DATABASE
  export PRISMA_SCHEMA_ENGINE_BINARY=$ENGINE/query-engine # never started, but the generator downloads it if absent
  export PYTHONPATH=$DATABASE/python${PYTHONPATH:+:$PYTHONPATH}
  PATH=$DATABASE/python/bin:$VENV/bin:$PATH # Prisma's generator finds Python and itself there
}

# create_cluster MIGRATIONS  Creates a cluster and applies LiteLLM's migrations in their order.
create_cluster() (
  local files log=$DATABASE/cluster.log
  folder=$(mktemp -d) # unlike the cache, the server's user can enter it
  stop_server() { (postgres pg_ctl -D data -m fast -w stop) >>"$log" 2>&1; }
  trap 'stop_server || true; rm -rf "$folder"' EXIT
  [[ $EUID -ne 0 ]] || chown nobody:nogroup "$folder"
  cd "$folder"
  (postgres initdb --no-sync --wal-segsize=1 --username=sluice --encoding=UTF8 --locale=C.UTF-8 --auth=trust --pgdata=data) \
    >"$log" 2>&1 || die "initdb failed: see $log"
  (postgres pg_ctl -D data -o "-k $folder -c listen_addresses= -c fsync=off" -l server.log -w start) \
    >>"$log" 2>&1 || die "Postgres did not start: see $log"
  mapfile -t files < <(find "$1" -mindepth 2 -maxdepth 2 -name migration.sql -printf '--file=%p\n' | LC_ALL=C sort)
  "$POSTGRES/psql" --no-psqlrc --quiet --set=ON_ERROR_STOP=1 --host="$folder" --username=sluice --dbname=postgres \
    "${files[@]}" >>"$log" 2>&1 || die "a migration of LiteLLM failed: see $log"
  stop_server || die "Postgres did not stop: see $log"
  cp -a data "$DATABASE/cluster"
)

# database DIRECTORY  Serves a copy of the cluster on a socket in DIRECTORY until a signal.
database() {
  local folder=$1
  installed "$DATABASE" litellm
  if [[ ! -e $folder/data ]]; then
    mkdir -p "$folder"
    cp -a "$DATABASE/cluster" "$folder/data"
    [[ $EUID -ne 0 ]] || chown nobody:nogroup "$folder"
  fi
  folder=$(cd "$folder" && pwd)
  cd "$folder"
  postgres postgres -D "$folder/data" -k "$folder" -c listen_addresses= -c fsync=off -c shared_buffers=16MB
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
  if [[ -n ${DATABASE_URL:-} ]]; then
    installed "$DATABASE" litellm
    use_prisma
    export DISABLE_SCHEMA_UPDATE=true # the cluster has all migrations
  fi
  exec "$VENV/bin/litellm" --config "$config" --host "${LITELLM_HOST:-127.0.0.1}" --port "$port" --num_workers 1
}

case ${1:-} in
  install)
    [[ $# -eq 1 ]] || usage
    once "$VENV" "LiteLLM $VERSION (about 750 MB, one minute)" python_packages "$VENV" "litellm[proxy]==$VERSION"
    once "$DATABASE" "LiteLLM's database (about 80 MB, 10 seconds)" database_packages
    ;;
  run) [[ $# -eq 3 ]] || usage; run "$2" "$3" ;;
  database) [[ $# -eq 2 ]] || usage; database "$2" ;;
  cluster) [[ $# -eq 1 ]] || usage; installed "$DATABASE" litellm; echo "$DATABASE/cluster" ;;
  json) # prints a YAML file as JSON, for tests
    [[ $# -eq 2 ]] || usage
    exec "$VENV/bin/python" -c 'import json, sys, yaml; json.dump(yaml.safe_load(open(sys.argv[1])), sys.stdout)' "$2"
    ;;
  *) usage ;;
esac
