# shellcheck shell=bash
# How a private test server lives in a folder of its own, whichever database it is.
#
# Sourced by the script of each database, which then calls `main "$@"` and before that sets
#   url_variable, url_scheme   what the tests read, DLOCK_TEST_PG=postgresql://…
#   process_name               of the server, as the kernel shows it: a pattern
#   system_user                who runs the server when root starts it
#   stop_signal                how the server is asked to stop in order
#   password_in_data           set where what create makes knows the password: a copy of it has the same
# and defines
#   find_programs              which programs it runs; calls `missing PACKAGE` where there are none
#   create                     makes $data, with a role `dlock`, its password as in $dir/password.new, and a database `dlock`
#   configure                  what else is written before a new server's first start; it may be nothing
#   server_command             sets the array `command`: the server on $data, $port and the socket in $dir
#   answers                    true when a client with the password gets an answer
#   socket                     prints what a client names to use the unix socket
#   forget_killed              removes what a killed server leaves behind and a new one would stumble over
#
# shellcheck disable=SC2154

self=$(realpath -- "$0")

die() {
  echo "${0##*/}: $1" >&2
  exit "${2:-1}"
}

# ctest counts 77 as skipped.
missing() {
  die "not installed; on Debian: apt-get install $1" 77
}

usage() {
  cat >&2 <<END
usage: ${0##*/} start DIR          start a private server in DIR, an empty folder or one of an earlier start
       ${0##*/} stop DIR           stop it; its data stay in DIR
       ${0##*/} signal DIR NAME    send a signal to all its processes (KILL: a crash, STOP and CONT: a freeze)
       ${0##*/} clock DIR OFFSET   step its clock to OFFSET from the true time; it must have been started with one
environment of start: DLOCK_SERVER_OWNER_PID, DLOCK_FAKETIME, DLOCK_SERVER_ARGS, DLOCK_SERVER_TLS, DLOCK_SERVER_TEMPLATES
(see README.md beside this file)
END
  exit 2
}

# A server and its clients must not see the caller's PGHOST, MYSQL_PWD, LANG or LD_PRELOAD.
clean_environment() {
  local variable
  for variable in $(compgen -e); do
    case $variable in
      PATH | TZ | SHELLOPTS | BASHOPTS | DLOCK_FAKETIME | DLOCK_SERVER_*) ;;
      *) unset "$variable" ;;
    esac
  done
  export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C.UTF-8
}

# --- the folder ---

open_folder() {
  dir=$(realpath -- "$1")
  data=$dir/data
  [[ $dir =~ ^[A-Za-z0-9/._-]+$ ]] || die "DIR must be plain letters, digits, '.', '_' and '-', not '$dir'" 2
  ((${#dir} <= 80)) || die "DIR is too long for a unix socket in it (80 bytes at most): $dir" 2
  cd "$dir" || die "cannot enter $dir"
  export HOME=$dir
  if [[ $(id -u) == 0 ]]; then
    as_server=(setpriv --reuid "$system_user" --regid "$system_user" --init-groups)
  else
    as_server=()
  fi
}

# One start or stop in a folder at a time; the folder may have been removed while this one waited.
lock_folder() {
  exec {lock_fd}>>"$dir/lock"
  flock -w 120 "$lock_fd" || die "another start or stop is busy in $dir"
  [[ -e $dir/lock ]] || die "$dir is gone"
}

claim_folder() {
  [[ -e $dir/lock || -z $(ls -A -- "$dir") ]] || die "DIR must be an empty folder or one of an earlier start: $dir" 2
  if [[ $(id -u) == 0 ]]; then
    id -- "$system_user" >/dev/null 2>&1 || die "there is no system user '$system_user' to run the server" 77
    chown "$system_user" "$dir"
  fi
  chmod 700 "$dir"
  "${as_server[@]}" test -w "$dir" || die "user '$system_user' cannot reach $dir: choose a folder below /tmp"
}

# --- the processes ---

# A server's processes work in its data folder: true for PostgreSQL's orphans after a crash too.
is_ours() {
  local comm
  # shellcheck disable=SC2053
  [[ /proc/$1/cwd -ef $data ]] && read -r comm 2>/dev/null <"/proc/$1/comm" && [[ $comm == $process_name ]]
}

processes() {
  local entry
  for entry in /proc/[0-9]*; do
    if is_ours "${entry#/proc/}"; then echo "${entry#/proc/}"; fi
  done
}

# The main process, when it is alive.
main_process() {
  local pid
  if [[ -r $dir/pid ]] && pid=$(<"$dir/pid") && [[ -n $pid ]] && is_ours "$pid"; then echo "$pid"; fi
}

# Main process first, so that it starts no others meanwhile.
signal_all() {
  local main pid
  main=$(main_process)
  if [[ -n $main ]]; then kill -s "$1" "$main" 2>/dev/null || true; fi
  for pid in $(processes); do
    if [[ $pid != "$main" ]]; then kill -s "$1" "$pid" 2>/dev/null || true; fi
  done
}

# A killed process may stay a zombie for a while, so its pid files must not be left to be judged by the next server.
kill_all() {
  local pid
  while [[ -n $(processes) ]]; do
    signal_all KILL
    sleep 0.05
  done
  forget_killed
  if pid=$(cat "$dir/pid" 2>/dev/null); then
    rm -f "/dev/shm/faketime_shm_$pid" "/dev/shm/sem.faketime_sem_$pid" "$dir/pid"
  fi
}

stop_all() {
  local pid deadline=$((SECONDS + 30))
  pid=$(main_process)
  if [[ -n $pid ]]; then
    kill -s "$stop_signal" "$pid" 2>/dev/null || true
    signal_all CONT
    while is_ours "$pid" && ((SECONDS < deadline)); do sleep 0.05; done
  fi
  kill_all
}

# Whoever waits for the end of our output must not wait for the server's.
close_inherited_files() {
  local fd
  for fd in /proc/self/fd/*; do
    fd=${fd##*/}
    if ((fd > 2 && fd != 255)); then exec {fd}>&-; fi
  done
}

# --- the clock ---

write_clock() {
  [[ $1 =~ ^[+-][0-9]+(\.[0-9]+)?[smhd]?$ ]] || die "the offset of a clock is like +1d, -90m or +2.5, not '$1'" 2
  echo "$1" >"$dir/faketime.new"
  chmod 644 "$dir/faketime.new"
  mv -f "$dir/faketime.new" "$dir/faketime"  # never seen half written
}

# Sets the array `faked`: what to put before a command to give it the folder's clock. It looks at it each time. Without
# the last of these a wait that is bounded by the monotonic clock ends at once: nine threads of MySQL never rest.
find_faketime() {
  faked=()
  [[ -e $dir/faketime ]] || return 0
  find_faketime_library
  faked=(env "LD_PRELOAD=$faketime_library" "FAKETIME_TIMESTAMP_FILE=$dir/faketime" FAKETIME_NO_CACHE=1
    FAKETIME_DONT_FAKE_MONOTONIC=1 FAKETIME_FORCE_MONOTONIC_FIX=0)
}

find_faketime_library() {
  for faketime_library in /usr/lib/*/faketime/libfaketimeMT.so.1 /usr/lib/faketime/libfaketimeMT.so.1; do
    if [[ -e $faketime_library ]]; then return 0; fi
  done
  missing faketime
}

# --- start ---

# A port that nobody listens on now, below those that the kernel gives to clients; nor that of a server beside this one,
# which may be about to start again.
free_port() {
  local port
  while true; do
    port=$((20000 + RANDOM % 12000))
    if grep -qsx "$port" "${dir%/*}"/{dlock*,dlock*/[123],[123]}/port "${dir%/*/*}"/{dlock*,dlock*/[123]}/port \
      /dev/shm/dlock-tests.*/{dlock*,dlock*/[123]}/port; then continue; fi
    if ! (: <>"/dev/tcp/127.0.0.1/$port") 2>/dev/null; then
      echo "$port"
      return
    fi
  done
}

# With DLOCK_SERVER_TLS when the folder is new: a certificate of its own authority for the name localhost, in
# $dir/tls.crt and $dir/tls.key; DLOCK_SERVER_TLS=expired: of long ago; DLOCK_SERVER_TLS=mysql: for MySQL
# alone. RSA: its signatures are all of one length, so that a server says as much each time, and a test can count that.
make_certificate() {
  local -a long_ago=()
  [[ -n ${DLOCK_SERVER_TLS:-} && ! -e $dir/tls.crt ]] || return 0
  if [[ $DLOCK_SERVER_TLS == mysql && ${0##*/} != mysql* ]]; then return 0; fi
  command -v openssl >/dev/null || missing openssl
  if [[ $DLOCK_SERVER_TLS == expired ]]; then
    find_faketime_library
    long_ago=(env "LD_PRELOAD=$faketime_library" FAKETIME=-9000d)
  fi
  "${long_ago[@]}" openssl req -x509 -newkey rsa:2048 -nodes -days 3650 -subj /CN=localhost \
    -addext 'subjectAltName=DNS:localhost' -keyout "$dir/tls.key" -out "$dir/tls.crt.new" \
    >>"$dir/log" 2>&1 || show_log_and_die 0
  chmod 600 "$dir/tls.key"
  if [[ $(id -u) == 0 ]]; then chown "$system_user" "$dir/tls.key" "$dir/tls.crt.new"; fi
  mv "$dir/tls.crt.new" "$dir/tls.crt"
}

launch() {
  local -a command=() extra=()
  server_command
  read -ra extra <<<"${DLOCK_SERVER_ARGS:-}"
  (
    close_inherited_files
    exec setsid "${as_server[@]}" "${faked[@]}" "${command[@]}" "${extra[@]}" </dev/null >>"$dir/log" 2>&1
  ) &
  server_pid=$!
  echo "$server_pid" >"$dir/pid"
}

# False when the server ended instead.
wait_until_it_answers() {
  local deadline=$((SECONDS + 120))
  until answers >/dev/null 2>&1; do
    kill -0 "$server_pid" 2>/dev/null || return 1
    if ((SECONDS >= deadline)); then
      kill_all
      return 1
    fi
    sleep 0.1
  done
  is_ours "$server_pid"
}

# $1: how much of the log there was before.
show_log_and_die() {
  # What it says of those who ask whether it is there hides what it says of itself.
  log_since "$1" | grep -v "Access denied for user 'dlock'" | tail -n 30 >&2
  stop_all
  die "the server did not start; its log is above"
}

log_since() {
  tail -c "+$(($1 + 1))" "$dir/log"
}

# The port is kept for the life of the folder, so that clients find a restarted server again. False: it does not start;
# `seen` is how much of the log there was before.
launch_on_a_port() {
  local attempt
  for attempt in {1..10}; do
    port=$(cat "$dir/port" 2>/dev/null || free_port)
    seen=$(stat -c %s "$dir/log")
    launch
    if wait_until_it_answers; then
      echo "$port" >"$dir/port"
      return
    fi
    log_since "$seen" | grep -q 'Address already in use' || return 1
    sleep "0.$attempt"
  done
  return 1
}

# What a server is made of is made once for all that are started with the same DLOCK_SERVER_TEMPLATES: it takes seconds.
create_with_password() {
  local template=''
  if [[ -n ${DLOCK_SERVER_TEMPLATES:-} && -z ${DLOCK_SERVER_FOLLOWS:-} ]]; then
    template=$DLOCK_SERVER_TEMPLATES/${0##*/}
  fi
  password=$(od -An -N16 -tx1 /dev/urandom | tr -d ' \n')
  rm -rf "$data"
  if [[ -n $template && -e $template && ${1-} != anew ]]; then
    cp -a "$template/data" "$data" || die "cannot copy $template"
    if [[ -n ${password_in_data:-} ]]; then password=$(<"$template/password"); fi
    echo "$password" >"$dir/password.new"
  else
    echo "$password" >"$dir/password.new"
    create >>"$dir/log" 2>&1 || show_log_and_die 0
    if [[ -n $template && ! -e $template ]]; then keep_template "$template"; fi
  fi
  configure
  mv "$dir/password.new" "$dir/password"  # now $data is whole
}

# The first one that is whole stays. Two servers that are to know each other must not have one identity: MySQL's auto.cnf.
keep_template() {
  local new
  new=$(mktemp -d "$1.XXXXXX") || return 0
  if cp -a "$data" "$dir/password.new" "$new" && mv "$new/password.new" "$new/password" && rm -f "$new/data/auto.cnf" &&
    mv -T "$new" "$1" 2>/dev/null; then return 0; fi
  rm -rf "$new"
}

write_env() {
  cat >"$dir/env.new" <<END
$url_variable=$url_scheme://dlock:$password@127.0.0.1:$port/dlock
DIR=$dir
SOCKET=$(socket)
PORT=$port
PID=$server_pid
LOG=$dir/log
END
  mv -f "$dir/env.new" "$dir/env"
}

start() {
  local password port server_pid seen new=no
  local -a faked
  claim_folder
  lock_folder
  if [[ -n ${DLOCK_FAKETIME:-} ]]; then write_clock "$DLOCK_FAKETIME"; fi
  find_faketime
  start_watcher
  if [[ -r $dir/env && -n $(main_process) ]]; then
    cat "$dir/env"
    return
  fi
  kill_all
  touch "$dir/log"
  if [[ -r $dir/password ]]; then
    password=$(<"$dir/password")
  else
    new=yes
    make_certificate
    create_with_password
  fi
  if ! launch_on_a_port; then
    # On a machine without air, what was just made has been seen to lack what the first start was to put into it.
    [[ $new == yes ]] || show_log_and_die "$seen"
    echo "${0##*/}: what was just made does not start, and is made once more" >>"$dir/log"
    kill_all
    create_with_password anew
    launch_on_a_port || show_log_and_die 0
  fi
  write_env
  cat "$dir/env"
}

stop() {
  lock_folder
  rm -f "$dir/env"
  stop_all
}

# --- the watcher: no server outlives the process it was started for ---

# A process number and when it began: numbers are used again.
identity() {
  local stat
  read -r stat 2>/dev/null <"/proc/$1/stat" || return 1
  read -ra stat <<<"${stat##*) }"
  [[ ${stat[0]} != Z ]] || return 1
  echo "$1 ${stat[19]}"
}

start_watcher() {
  local owner
  [[ -n ${DLOCK_SERVER_OWNER_PID:-} ]] || return 0
  owner=$(identity "$DLOCK_SERVER_OWNER_PID") ||
    die "DLOCK_SERVER_OWNER_PID must be a living process, not '$DLOCK_SERVER_OWNER_PID'" 2
  if [[ -r $dir/owner && $(<"$dir/owner") == "$owner" ]]; then return 0; fi
  echo "$owner" >"$dir/owner"
  (
    close_inherited_files
    exec setsid "$self" watch "$dir" </dev/null >/dev/null 2>&1
  ) &
}

# Ends with the folder, with its owner, or when the folder gets another owner.
watch() {
  local owner
  owner=$(<"$dir/owner")
  cd /
  while [[ $(identity "${owner% *}") == "$owner" ]]; do
    if [[ ! -r $dir/owner || $(<"$dir/owner") != "$owner" ]]; then return; fi
    sleep 1
  done
  if [[ -r $dir/owner && $(<"$dir/owner") == "$owner" ]]; then
    stop || kill_all
    rm -rf "$dir"
  fi
}

main() {
  (($# >= 2)) || usage
  clean_environment
  umask 022
  find_programs
  if [[ ! -d $2 ]]; then
    [[ $1 == stop ]] && return
    die "no such folder: $2" 2
  fi
  open_folder "$2"
  case $1:$# in
    start:2 | stop:2 | watch:2) "$1" ;;
    signal:3)
      kill -l "$3" >/dev/null 2>&1 || die "no such signal: $3" 2
      if [[ $3 == KILL ]]; then kill_all; else signal_all "$3"; fi
      ;;
    clock:3)
      [[ -e $dir/faketime ]] || die "the server in $dir was started without DLOCK_FAKETIME" 2
      write_clock "$3"
      ;;
    *) usage ;;
  esac
}
