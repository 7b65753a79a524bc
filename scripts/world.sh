# shellcheck shell=bash
# Starts a complete Sluicegate on temporary paths, for scripts to source: `world_start` starts it, and the script's exit stops
# it. Not for production, and not for tests, which have their own harness.

if [[ -n ${LITELLM_BASE_URL:-} && -z ${LITELLM_MASTER_KEY:-} ]]; then
  echo "${0##*/}: LITELLM_BASE_URL is set, but LITELLM_MASTER_KEY is not: set both, or none for the scripted upstream" >&2
  exit 2
fi
WORLD_PORT=18089
# Removed from the environment before any program starts, dockerd and build scripts included. The control plane refuses to
# start with the key in its environment, and the proxy reads it from a file.
WORLD_KEY=${LITELLM_MASTER_KEY:-sk-demo-key}
unset LITELLM_MASTER_KEY

# world_build CARGO_PROFILE  Builds the programs of a world, and puts them first in PATH.
world_build() {
  local profile=$1 directory=$1 quiet=--quiet
  [[ $profile != dev ]] || directory=debug
  [[ ! -t 2 ]] || quiet=
  cargo build ${quiet:+"$quiet"} --locked --profile "$profile" --package proxy --package runner-cli --package bench \
    --bin sluice-proxy --bin sluice --bin scripted-upstream
  PATH=${CARGO_TARGET_DIR:-$PWD/target}/$directory:$PATH
}

# world_start TOML  Starts the scripted upstream (or uses LITELLM_BASE_URL) and `sluice up`, after world_build.
# Sets WORLD (a directory), WORLD_UPSTREAM (a base URL) and SLUICE_CONFIG. At its end it calls the script's function
# after_world, if there is one.
world_start() {
  local settings=$1
  WORLD=$(mktemp -d /tmp/sluice-world.XXXXXX)
  trap world_stop EXIT
  (umask 077 && printf '%s' "$WORLD_KEY" >"$WORLD/key")
  WORLD_UPSTREAM=${LITELLM_BASE_URL:-http://127.0.0.1:$WORLD_PORT}
  if [[ -z ${LITELLM_BASE_URL:-} ]]; then
    scripted-upstream --listen "127.0.0.1:$WORLD_PORT" --ledger "$WORLD/ledger" >"$WORLD/upstream.log" 2>&1 &
  fi
  export SLUICE_CONFIG=$WORLD/sluice.toml
  world_config "$settings" >"$SLUICE_CONFIG"
  sluice up >"$WORLD/up.log" 2>&1 &
  world_wait
}

world_config() {
  cat <<TOML
[upstream]
base_url = "$WORLD_UPSTREAM"
key_file = "$WORLD/key"
[proxy]
run_dir = "$WORLD/run"
state_dir = "$WORLD/state"
[sandbox]
state_dir = "$WORLD/runner"
workspace_dir = "$WORLD/workspaces"
installation = "$(basename "$WORLD")"
[store]
url = "sqlite://$WORLD/store/sluice.db"
$1
TOML
}

world_wait() {
  local _
  for _ in $(seq 200); do
    ! grep -q '^ready' "$WORLD/up.log" || return 0
    sleep 0.05
  done
  cat "$WORLD/up.log" >&2
  return 1
}

# Cancels the runs that have not ended: they outlive `sluice up` by design, and their mounts hold the world's directories.
world_cancel_runs() {
  local state states=() runs
  for state in queued preparing starting running collecting settling; do states+=(--state "$state"); done
  runs=$(sluice runs ls --json --number 1000 "${states[@]}" | grep -oE '"run_id":"[^"]+"' | cut -d '"' -f 4) || return 0
  # shellcheck disable=SC2086 # a list of ids
  sluice runs cancel $runs >&2
}

world_stop() {
  local jobs
  jobs=$(jobs -p)
  world_cancel_runs || true
  # shellcheck disable=SC2086 # a list of process ids
  [[ -z $jobs ]] || kill $jobs 2>/dev/null || true
  wait
  rm -rf "$WORLD"
  [[ $(type -t after_world) != function ]] || after_world
}
