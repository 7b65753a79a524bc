#!/usr/bin/env bash
# Lists what tests can leave on a machine: containers and volumes, mounts and loop devices of temporary directories, those
# directories, and processes. A suite compares the lists from before and after it (scripts/suite.sh).
#
# usage: leftovers.sh MARK      MARK is what the processes of the suite have in their environment
set -euo pipefail

[[ $# -eq 1 ]] || { echo "usage: scripts/leftovers.sh MARK" >&2; exit 64; }
mark=$1

# Containers and volumes; none if Docker does not run.
containers() {
  docker ps --all --format 'container {{.Names}} ({{.Image}})' || return 0
  docker volume ls --format 'volume {{.Name}}'
}

mounts() {
  awk '$2 ~ "^/tmp/" { print "mount " $2 }' /proc/mounts
  losetup --noheadings --list --output NAME,BACK-FILE | awk '$2 ~ "^/tmp/" { print "loop device " $1 " of " $2 }'
}

directories() { find /tmp -mindepth 1 -maxdepth 1 \( -name '.tmp*' -o -name 's?-*' -o -name 'sluice*' \) -printf 'directory %p\n'; }

# Processes with the mark, and those without an environment whose arguments name a test's directory.
processes() {
  local directory arguments
  for directory in /proc/[0-9]*; do
    [[ ${directory#/proc/} != "$$" ]] || continue
    arguments=$(tr '\0' ' ' <"$directory/cmdline") || continue
    if grep -qzxF "$mark" "$directory/environ" || [[ $arguments =~ /tmp/(s.-|sluice|\.tmp) ]]; then
      [[ -z $arguments ]] || echo "process ${directory#/proc/}: ${arguments:0:150}"
    fi
  done
}

# A list that fails in part, because a process or a directory has just gone, counts as far as it goes.
for list in containers mounts directories processes; do
  "$list" 2>/dev/null || true
done | sort
