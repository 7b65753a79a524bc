#!/usr/bin/env bash
# The Docker daemon on a machine without an init system: starts one when none answers, stops the one it started.
# Not a service manager: nothing restarts the daemon, and a daemon that somebody else started is only ever looked at.
set -euo pipefail

SOCKET=/var/run/docker.sock
STATE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate/docker
LOG=$STATE/dockerd.log
OURS=$STATE/dockerd.pid # "PID START-TIME" of the daemon that this script started
START_SECONDS=30
STOP_SECONDS=20

say() { echo "docker: $*" >&2; }
die() { echo "docker: error: $*" >&2; exit 1; }

# Prints the engine's version; fails when no daemon answers.
answers() {
  [[ -S $SOCKET ]] && timeout 5 docker -H "unix://$SOCKET" version --format '{{.Server.Version}}' 2>/dev/null
}

# A pid alone is reused after a restart of the machine: the name, and for our own daemon the start time, must agree.
# A zombie is dead: where PID 1 is no init, it may keep its pid for a while.
is_program() {
  local name='' state=''
  { [[ -n $1 ]] && read -r _ name state _ <"/proc/$1/stat"; } 2>/dev/null || return 1
  [[ $name == "($2)" && $state != Z ]]
}
start_time() { cut -d ' ' -f 22 "/proc/$1/stat" 2>/dev/null; }

our_pid() {
  local pid started
  { read -r pid started <"$OURS"; } 2>/dev/null || return 1
  is_program "$pid" dockerd && [[ $(start_time "$pid") == "$started" ]] && echo "$pid"
}

# A daemon that was killed leaves its pid files behind, and the next one refuses to start because of them.
remove_stale_files() {
  local pid
  rm -f /var/run/docker.pid
  pid=$(cat /var/run/docker/containerd/containerd.pid 2>/dev/null || true)
  is_program "$pid" containerd || rm -f /var/run/docker/containerd/containerd{.pid,.sock,.sock.ttrpc,-debug.sock}
}

not_up() {
  echo "docker: error: $1; the last lines of $LOG:" >&2
  tail -n 15 "$LOG" >&2
  exit 1
}

start() {
  answers >/dev/null && return
  command -v dockerd >/dev/null || die "dockerd is missing: install the Debian package docker.io (scripts/setup.sh docker does)"
  [[ $EUID -eq 0 ]] || die "starting the Docker daemon needs root"
  mkdir -p "$STATE"
  exec 9>"$STATE/lock"
  flock 9
  answers >/dev/null && return # somebody else started it while this one waited
  local pid deadline=$((SECONDS + START_SECONDS))
  pid=$(cat /var/run/docker.pid 2>/dev/null || true)
  if is_program "$pid" dockerd; then # somebody else's, perhaps just coming up
    wait_for_answer "$pid" "$deadline" || die "dockerd (pid $pid) runs but does not answer on $SOCKET: see its own log"
    return
  fi
  remove_stale_files
  say "starting the daemon (log: $LOG) ..."
  setsid nohup dockerd >"$LOG" 2>&1 </dev/null 9>&- &
  pid=$!
  if ! wait_for_answer "$pid" "$deadline"; then
    is_program "$pid" dockerd || not_up "dockerd ended at once"
    kill "$pid"
    not_up "dockerd did not answer within $START_SECONDS s and was stopped"
  fi
  echo "$pid $(start_time "$pid")" >"$OURS"
}

wait_for_answer() {
  local pid=$1 deadline=$2
  until answers >/dev/null; do
    kill -0 "$pid" 2>/dev/null && ((SECONDS < deadline)) || return 1
    sleep 0.1
  done
}

stop() {
  local pid deadline=$((SECONDS + STOP_SECONDS))
  if ! pid=$(our_pid); then
    if answers >/dev/null; then
      say "the daemon that answers was not started by this script: left alone"
    fi
    return
  fi
  say "stopping the daemon (pid $pid) ..."
  kill "$pid"
  while is_program "$pid" dockerd; do
    ((SECONDS < deadline)) || not_up "dockerd did not stop within $STOP_SECONDS s"
    sleep 0.1
  done
  rm -f "$OURS"
}

status() {
  local version pid
  version=$(answers) || { echo "no daemon answers on $SOCKET"; return 1; }
  if pid=$(our_pid); then
    echo "engine $version answers on $SOCKET (pid $pid, log $LOG)"
  else
    echo "engine $version answers on $SOCKET (not started by this script)"
  fi
}

case "$#:${1:-}" in
  1:start | 1:stop | 1:status) "$1" ;;
  *) echo "usage: scripts/docker.sh start | stop | status" >&2; exit 64 ;;
esac
