# shellcheck shell=bash
# Where tests and their servers write: into memory, where there is room for it. Who waits for a disk is held
# up by all others who write to it, for seconds at times; what a killed server has written is there in memory as well.

# Prints a new folder in memory. What a run left there that was killed is taken away.
folder_in_memory() {
  local memory=/dev/shm each
  local -i gigabyte=$((1024 * 1024)) free available
  [[ -w $memory && $(stat -f -c %T $memory) == tmpfs ]] || return 1
  for each in "$memory"/dlock-tests.*.*; do
    if [[ -O $each ]] && ! kill -0 "$(cut -d . -f 2 <<<"$each")" 2>/dev/null; then rm -rf "$each"; fi
  done
  free=$(df -k --output=avail $memory | tail -n 1)
  available=$(awk '/^MemAvailable:/ { print $2 }' /proc/meminfo)
  ((free >= 6 * gigabyte && available >= 10 * gigabyte)) || return 1
  each=$(mktemp -d "$memory/dlock-tests.$$.XXXXXX")
  chmod 755 "$each"  # for the servers' users
  if cp /bin/true "$each/true" && "$each/true"; then
    rm "$each/true"
    echo "$each"
  else  # nothing may be run there
    rm -rf "$each"
    return 1
  fi
}

# Sets TMPDIR for what is started from now on, unless it is set; the folder goes when the calling script ends. A script with
# a trap of its own for that calls leave_memory there.
write_to_memory() {
  if [[ -n ${TMPDIR-} ]] || ! memory_folder=$(folder_in_memory); then return 0; fi
  export TMPDIR=$memory_folder
  trap leave_memory EXIT
}

# Servers of this run are copies of the first of their kind, where there is room for that: in the folder that goes with it.
make_place_for_templates() {
  if [[ -z ${memory_folder-} ]]; then return 0; fi
  mkdir "$memory_folder/templates"
  export DLOCK_SERVER_TEMPLATES=$memory_folder/templates
}

# A server that works there still, since whoever was to stop it was killed, would go on without its folder.
leave_memory() {
  local entry
  if [[ -z ${memory_folder-} ]]; then return 0; fi
  for entry in /proc/[0-9]*; do
    if [[ $(readlink "$entry/cwd" 2>/dev/null) == "$memory_folder"/* ]]; then kill -KILL "${entry#/proc/}" 2>/dev/null || true; fi
  done
  rm -rf "$memory_folder"
}
