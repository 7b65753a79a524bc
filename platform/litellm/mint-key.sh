#!/bin/sh
# Mints the key that Sluicegate uses at LiteLLM, and writes it to a new file that only its owner can read. The key is good
# for the named models and for the routes that Sluicegate calls, and for no other.
#
# usage: mint-key.sh FILE MODEL...     LITELLM_BASE_URL, and LITELLM_MASTER_KEY or LITELLM_MASTER_KEY_FILE
set -eu

# Routes of agents, the ledger that `sluice billing` compares receipts with, and the prices of models.
ROUTES='["/v1/chat/completions", "/v1/completions", "/v1/responses", "/v1/responses/input_tokens", "/v1/responses/compact",
  "/v1/messages", "/v1/messages/count_tokens", "/v1/embeddings", "/v1/models", "/spend/logs/v2",
  "/model/info"]'

die() {
  echo "mint-key: error: $*" >&2
  exit 1
}

if [ $# -lt 2 ]; then
  echo "usage: mint-key.sh FILE MODEL..." >&2
  exit 64
fi
file=$1
shift
[ ! -e "$file" ] || die "$file exists: move it away, or name another file"
: "${LITELLM_BASE_URL:?is the address of LiteLLM, such as http://litellm:4000}"
if [ -n "${LITELLM_MASTER_KEY_FILE:-}" ]; then LITELLM_MASTER_KEY=$(cat "$LITELLM_MASTER_KEY_FILE"); fi
: "${LITELLM_MASTER_KEY:?is the key that LiteLLM was started with}"

request=$(jq -n --argjson routes "$ROUTES" '{ key_alias: "sluicegate", models: $ARGS.positional, allowed_routes: $routes }' \
  --args -- "$@")
# The keys are never among the arguments of a process, which every user of the host sees.
answer=$(printf 'header = "authorization: Bearer %s"\n' "$LITELLM_MASTER_KEY" |
  curl --silent --show-error --config - --header 'content-type: application/json' --data "$request" \
    "$LITELLM_BASE_URL/key/generate") || die "LiteLLM at $LITELLM_BASE_URL does not answer"
key=$(printf '%s' "$answer" | jq -er '.key') ||
  die "LiteLLM made no key: $(printf '%s' "$answer" | jq -r '.error.message // .detail' 2>/dev/null || printf '%s' "$answer")"
(umask 077 && printf '%s' "$key" >"$file")
echo "mint-key: wrote the key to $file" >&2
