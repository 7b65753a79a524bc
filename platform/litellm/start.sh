#!/bin/sh
# Starts LiteLLM in a container: each file of /run/secrets becomes the environment variable of its name, since LiteLLM reads
# secrets from its environment alone. The password of Postgres becomes part of the database's address.
set -eu

for file in /run/secrets/*; do
  export "$(basename "$file")=$(cat "$file")"
done
DATABASE_URL="postgresql://litellm:$POSTGRES_PASSWORD@postgres:5432/litellm"
export DATABASE_URL
unset POSTGRES_PASSWORD
exec litellm --config /config/config.yaml --host 0.0.0.0 --port 4000
