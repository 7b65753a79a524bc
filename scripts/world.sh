# shellcheck shell=bash
# Starts a complete Sluicegate on temporary paths, for scripts to source: `world_start` starts it, and the script's exit stops
# it. Not for production, and not for tests, which have their own harness.

WORLD_PORT=18089
# The control plane refuses to start with a key in its environment.
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

# world_start TOML  Starts the scripted upstream and `sluice up`, after world_build. Sets WORLD (a directory) and SLUICE_CONFIG.
world_start() {
  local settings=$1
  WORLD=$(mktemp -d /tmp/sluice-world.XXXXXX)
  trap world_stop EXIT
  (umask 077 && printf sk-world-key >"$WORLD/key")
  scripted-upstream --listen "127.0.0.1:$WORLD_PORT" >"$WORLD/upstream.log" 2>&1 &
  export SLUICE_CONFIG=$WORLD/sluice.toml
  world_config "$settings" >"$SLUICE_CONFIG"
  sluice up >"$WORLD/up.log" 2>&1 &
  world_wait
}

world_config() {
  cat <<TOML
[upstream]
base_url = "http://127.0.0.1:$WORLD_PORT"
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
  [[ -n $runs ]] || return 0
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
}
