#!/usr/bin/env bash
# Starts and stops a Docker daemon on a machine without an init system. Starts one only if no daemon answers.
# Does not restart a daemon, and does not stop a daemon that it did not start.
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

# Returns whether process $1 runs the program $2. A pid is reused after a restart, so the name must match; for our daemon,
# the start time must match too. A zombie counts as dead: without an init as PID 1 it can keep its pid for a while.
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

# Removes the pid files that a killed daemon leaves behind: the next daemon refuses to start because of them.
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
  answers >/dev/null && return # another process started it while this one waited for the lock
  local pid deadline=$((SECONDS + START_SECONDS))
  pid=$(cat /var/run/docker.pid 2>/dev/null || true)
  if is_program "$pid" dockerd; then # another process's daemon, perhaps still starting
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
      say "this script did not start the running daemon: not stopped"
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
