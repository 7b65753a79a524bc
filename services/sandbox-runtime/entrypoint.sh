#!/usr/bin/env bash
# Bridges localhost:8080 to the run's socket, waits until /health answers, then executes the agent's command.
# Does not interpret the command: argv is executed as a list, without a shell.
set -euo pipefail

SOCKET=${LLM_PROXY_SOCKET:-/llm-sock/llm.sock}
PORT=${LLM_PROXY_PORT:-8080}
WAIT_MICROSECONDS=5000000

fail() { echo "sandbox-entrypoint: $1" >&2; exit "${2:-1}"; }

microseconds() { echo "${EPOCHREALTIME/[.,]/}"; }

# Prints the status line of /health through the bridge, or nothing if there is no answer. Uses bash's own sockets, because
# starting curl every few milliseconds would cost more than the wait. Runs in a subshell, where SIGPIPE is harmless.
health() {
  (
    exec 3<>"/dev/tcp/localhost/$PORT" &&
      printf 'GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n' >&3 &&
      IFS= read -r -t 1 status <&3 &&
      echo "${status%$'\r'}"
  ) 2>/dev/null || true
}

start_bridge() {
  local bridge answer deadline
  # nodelay: streamed events must not wait for each other. backlog: socat's default of 5 is too few for a burst of calls.
  # Output is discarded: socat reports every dropped connection in the middle of the agent's output.
  socat -b 65536 "TCP-LISTEN:$PORT,fork,reuseaddr,bind=127.0.0.1,nodelay,backlog=128" "UNIX-CONNECT:$SOCKET" \
    </dev/null >/dev/null 2>&1 &
  bridge=$!
  deadline=$(($(microseconds) + WAIT_MICROSECONDS))
  until answer=$(health) && [[ $answer == HTTP/1.?' 200'* ]]; do
    kill -0 "$bridge" 2>/dev/null || fail "the bridge could not listen on 127.0.0.1:$PORT (is the port taken?)"
    (($(microseconds) < deadline)) ||
      fail "no healthy proxy behind $SOCKET after $((WAIT_MICROSECONDS / 1000000)) s: /health said '${answer:-nothing}'"
    sleep 0.005
  done
}

[[ $# -gt 0 ]] || fail 'no command: pass the program to run and its arguments' 64
if [[ -S $SOCKET ]]; then
  start_bridge
elif [[ -n ${OPENAI_API_BASE:-} ]]; then
  fail "OPENAI_API_BASE is set but there is no socket at $SOCKET: is the run's socket directory mounted?"
fi
exec "$@"
