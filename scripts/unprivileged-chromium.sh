#!/usr/bin/env bash
# Starts Chromium as a user that is not root, in its own sandbox where the kernel permits one. Tests that run as root start it
# with this: a page that breaks out of a tab then has no right of theirs. The profile's folder becomes the user's home.
set -euo pipefail

CHROMIUM=/usr/bin/chromium
# In no range from which a system gives ids to people or services, so no file belongs to it.
USER_ID=64321

[[ $(id -u) == 0 ]] || exec "$CHROMIUM" "$@"

profile=
for argument; do
  [[ $argument == --user-data-dir=* ]] && profile=${argument#--user-data-dir=}
done
[[ -d $profile ]] || { echo "unprivileged-chromium: error: no --user-data-dir, or no such folder" >&2; exit 64; }
chmod o+x "${profile%/*}"
chown -R "$USER_ID:$USER_ID" "$profile"

as_user=(setpriv --reuid="$USER_ID" --regid="$USER_ID" --clear-groups --bounding-set=-all)
switches=()
"${as_user[@]}" unshare --user --net true 2>/dev/null || switches=(--no-sandbox)
exec "${as_user[@]}" env HOME="$profile" TMPDIR="$profile" XDG_CONFIG_HOME="$profile" XDG_CACHE_HOME="$profile" \
  "$CHROMIUM" "${switches[@]}" "$@"
