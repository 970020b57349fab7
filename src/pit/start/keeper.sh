#!/bin/sh
# The keeper: owns one agent process. It launches the agent, waits for it and records its exit, so that agents outlive a
# restart of the pit, and it costs megabytes less than a Node process. Lazarus stores this script in run_dir under its own
# digest: an upgrade never changes the script under a running shell. Supported shells: dash, bash, busybox.
#
# Open descriptors: 3 the life lock, as long as the keeper lives; 4 the log; 5 the caller's stderr, which is copied to the log
# for agents with an adapter. The agent gets none of
# them. launcher.ts made this process a child subreaper, so what the agent leaves behind becomes its child; where
# there is a control group for this life, the agent is in it and the keeper is not. The keeper kills all of that before it
# exits.
#
# With a terminal, a second helper (terminal-host.ts) opens a pty, copies its output to the log and serves those who attach.
# The agent stays a child of the keeper: it opens the pty as its controlling terminal in its own session. The host ends
# after the agent; when the host is killed, the kernel hangs up the terminal and the agent gets SIGHUP.
#
# Exit statuses are the shell's: 128 + n for signal n. A program that exits with such a code counts as killed.
#
# Variables start with _, because those that the keeper sets must not change the agent's environment.
# shellcheck disable=SC2046,SC2086 # words are split on purpose where variables are not quoted
_mask=$(umask) _path=$PATH
umask 077
PATH=/usr/bin:/bin:$PATH
_dir=$1 _epoch=$2 _boot=$3 _mission=$4 _cell=$5 _work=$6 _log=$7 _limit=$8 _count=$9
shift 9
_heart=$1 _every=$2 _grace=$3 _token=$4 _group=$5
shift 5
# Empty without a terminal: Node, the program that hosts the terminal, its size.
_node=$1 _host=$2 _columns=$3 _rows=$4
# In the foreground: what the agent writes to stderr also goes to the log.
_tee=$5
shift 5
_keeper=$$
exec 5>&2 2>/dev/null
# Started by the agent of another mission: leave its control group.
if [ -n "$_group" ]; then
  while read -r _line; do
    case $_line in 0::*/lazarus-*) echo 0 >"${_group%/*}/cgroup.procs" ;; esac
  done </proc/self/cgroup
fi
# Test first: a failed redirection of exec ends the shell, and a FIFO would block it.
if [ ! -p "$_log" ] && true >>"$_log"; then exec 4>>"$_log"; elif [ -n "$_log" ]; then exec 4>/dev/null; fi
# The open log, even if the file was removed or replaced.
_out=/proc/self/fd/4
[ -e "$_out" ] || _out=$_log

now() {
  _ms=$(date +%s%3N)
  case $_ms in *[!0-9]*) _ms=$(date +%s)000 ;; esac
}
# Sets _pid, _start and _parent of the calling process, which may be a subshell.
myself() {
  if read -r _stat </proc/self/stat; then
    _pid=${_stat%% *}
    set -- ${_stat##*) }
    _parent=$2 _start=${20}
  else
    _pid=$(exec sh -c 'echo $PPID') _parent=''
    set -- $(ps -o lstart= -p "$_pid")
    _start=$*
  fi
}
myself
_kstart=$_start
# The write offset is cheap to read but stays after a truncation, so a large one is checked against the file.
log_size() {
  _size=
  while read -r _key _value; do [ "$_key" = pos: ] && _size=$_value; done </proc/self/fdinfo/4
  [ "${_size:-$((_limit + 1))}" -le "$_limit" ] || _size=$(wc -c <"$_out")
  _size=$((${_size:-0}))
}
# Copies the end and truncates the file in place, since the agent keeps writing to it.
rotate() {
  log_size
  [ "$_size" -gt "$_limit" ] || return 0
  _n=$_count
  while [ "$_n" -gt 1 ]; do
    [ -f "$_log.$((_n - 1))" ] && mv -f "$_log.$((_n - 1))" "$_log.$_n"
    _n=$((_n - 1))
  done
  [ "$_count" -gt 0 ] && tail -c "$_limit" <"$_out" >"$_log.1"
  true >"$_out"
}
# Only when the agent itself has not sent a heartbeat. Overwrites the number in place, padded to its length, instead of
# replacing the file: a heartbeat that replaces it at the same moment wins, because the shell opens the file for writing
# before sed reads it, so what was read is never written to a later file. A number with more or fewer digits is left alone.
beat() {
  [ -f "$_heart" ] && [ ! -h "$_heart" ] || return 0
  [ "$(grep -c '"timestamp"' "$_heart")" = 1 ] || return 0
  now
  _s=${_ms%???}
  _last=$(sed -n 's/.*"timestamp": *\([1-9][0-9.]*\).*/\1/p' "$_heart")
  _whole=${_last%%.*}
  [ "${#_whole}" = "${#_s}" ] && [ "$((_s - _whole))" -ge "$((_every - 1))" ] || return 0
  # Before the heartbeat: it must not look like one of the agent's.
  printf '%s\n' "$_s" 1<>"$_dir/beat"
  sed -e 's/\("timestamp": *\)'"$_last"'/\1'"$(printf "%-${#_last}s" "$_s")"'/' \
    -e 's/\("status": *\)"bootstrapped"/\1"running"     /' "$_heart" 1<>"$_heart"
}
orphaned() {
  myself
  [ -n "$_parent" ] && [ "$_parent" != "$_keeper" ]
}
# KILL: any other signal would be lost on a sleep that is still a freshly forked shell with our traps.
leave() {
  if [ -n "$!" ] && [ "$!" != "$_hosting" ]; then
    kill -KILL $!
    wait $!
  fi
  # It writes the last output and ends. The shell reaps it while it waits for sleep.
  _n=0
  [ -z "$_hosting" ] || kill -TERM "$_hosting"
  while [ -n "$_hosting" ] && kill -0 "$_hosting"; do
    [ "$_n" -lt 200 ] || kill -KILL "$_hosting"
    _n=$((_n + 1))
    sleep 0.02
  done
  exit 0
}
# Without the agent's environment, which could change what Node does.
open_terminal() {
  env -i "$_node" --no-warnings "$_host" "$_dir" "$_epoch" "$_columns" "$_rows" </dev/null >"$_fifo" 2>&4 &
  _hosting=$!
}
# Sets _agent; fails before the agent has recorded itself.
find_agent() {
  _line=
  read -r _line <"$_dir/life.json"
  case $_line in '{"epoch": '"$_epoch",*) ;; *) return 1 ;; esac
  _line=${_line#*'"agent": {"pid": '}
  _agent=${_line%%,*}
}
# The host was killed, and the agent has survived SIGHUP. Its input and output are gone: TERM, then KILL.
end_without_terminal() {
  [ -n "$_hosting" ] && ! kill -0 "$_hosting" && find_agent || return 0
  kill "$_ending" "$_agent"
  _ending=-KILL _tick=1 _slow=1
}
# Runs next to the agent: heartbeats and log rotation. Ends on ALRM from the keeper or when the keeper is gone; ignores
# what an agent sends to its whole process group.
side() {
  # Not as redirections of the call: the shell would keep copies to restore, and so the lock.
  exec </dev/null >/dev/null 3>&- 5>&-
  trap leave ALRM
  trap 'orphaned && leave' TERM HUP USR1 USR2
  _tick=10 _age=$_every _was=0 _hosting='' _ending=-TERM
  [ "$_every" -lt 10 ] && _tick=$_every
  _slow=$_tick
  [ -z "$_host" ] || open_terminal
  while :; do
    if [ "$_age" -ge "$_every" ]; then beat; _age=0; fi
    sleep "$_tick" &
    wait $!
    if orphaned; then
      # The keeper was killed. The terminal stays as long as its agent.
      while [ -n "$_hosting" ] && find_agent && kill -0 "$_agent" && kill -0 "$_hosting"; do sleep 1; done
      leave
    fi
    end_without_terminal
    _age=$((_age + _tick))
    [ -n "$_log" ] || continue
    rotate
    # Check every second while the log grows fast.
    if [ "$((_size - _was))" -gt "$((_limit / 4))" ]; then _tick=1; else _tick=$_slow; fi
    _was=$_size
    [ "$_size" -gt "$_limit" ] && _was=0
  done
}
# What is left of the life: the keeper's children and the members of the control group.
remaining() {
  _kids=
  read -r _kids </proc/$_keeper/task/$_keeper/children
  [ -z "$_group" ] || while read -r _kid; do _kids="$_kids $_kid"; done <"$_group/cgroup.procs"
  [ -n "$_kids" ]
}
# Whether process $1, started at $2, is the keeper of another mission: it holds that mission's life lock as descriptor 3,
# and that mission's life.json names it.
foreign() {
  _held='' _life=''
  while read -r _key _value; do [ "$_key" = lock: ] && _held=1; done </proc/$1/fdinfo/3
  [ -n "$_held" ] || return 1
  _lock=$(readlink /proc/$1/fd/3)
  _other=${_lock%/life.lock*}
  [ "$_other" != "$_lock" ] && [ "$_other" != "$_dir" ] && [ "${_other%/*}" = "${_dir%/*}" ] || return 1
  read -r _life <"$_other/life.json"
  case $_life in *"\"keeper\": {\"pid\": $1, \"startTime\": \"$2\","*) return 0 ;; esac
  return 1
}
# Kills everything that the agent left behind: TERM, a grace period, KILL. Spares keepers of other missions.
reap() {
  _left=0 _n=0 _seen=' '
  while remaining; do
    _alive=0
    [ "$_n" -lt "$_grace" ] || [ -z "$_group" ] || echo 1 >"$_group/cgroup.kill"
    for _kid in $_kids; do
      _stat=
      read -r _stat </proc/$_kid/stat
      set -- ${_stat##*) }
      case ${1:-X} in Z | X) continue ;; esac
      [ "$_kid" = "$_copy" ] || foreign "$_kid" "${20}" && continue
      _alive=1
      if [ "$_n" -ge "$_grace" ]; then kill -KILL "$_kid"; fi
      case $_seen in *" $_kid "*) continue ;; esac
      _seen="$_seen$_kid " _left=$((_left + 1))
      kill -TERM "$_kid"
      kill -CONT "$_kid"
    done
    [ "$_alive" = 1 ] || break
    _n=$((_n + 1))
    [ "$_n" -gt "$((_grace + 300))" ] && break
    # Also reaps zombies.
    if [ "$_n" -lt 5 ]; then sleep 0.02; else sleep 0.1; fi
  done
}
# What the agent writes to stderr is copied to the log, which says why it failed. Where stdout is the same file or pipe, it is
# copied too, so that their order stays. A terminal is left alone: programs print differently to a pipe.
copy_errors() {
  if [ -t 5 ] || ! command -v tee >/dev/null || ! mkfifo "$_fifo"; then return 0; fi
  if [ "$(readlink /proc/$_keeper/fd/1)" = "$(readlink /proc/$_keeper/fd/5)" ]; then _both=1; fi
  # Ends with the last process that writes to it, not with Ctrl-C or when the caller's stderr is closed.
  ( trap '' TERM INT HUP QUIT USR1 USR2 PIPE; exec 3>&-; exec tee -a "$_out" <"$_fifo" >&5 5>&- ) &
  _copy=$!
}
# Waits up to two seconds: a process that reap left alone may still have the pipe open.
finish_copy() {
  _n=0
  while kill -0 "$_copy"; do
    [ "$_n" -lt 100 ] || kill -KILL "$_copy"
    _n=$((_n + 1))
    sleep 0.02
  done
  rm -f "$_fifo"
}

# Allocate exit.json now: it must be written even if the agent fills the disk.
_exit=$_dir/.exit.json.$_keeper.0.tmp
printf '%-250s\n' '{}' >"$_exit"
# Ignored until the side process has its own traps: the agent may signal its whole process group before that.
trap '' TERM HUP USR1 USR2
_tty=
_fifo=$_dir/.terminal.$_keeper.0.tmp
_copy='' _both=''
[ -z "$_host" ] || { _setsid=$(command -v setsid) && mkfifo "$_fifo"; } || exit 125
side &
_side=$!
# Caught, not ignored: the agent gets the default handlers. After the fork above: a freshly forked shell with this trap
# would lose a signal.
trap : TERM INT HUP QUIT USR1 USR2
# The host writes the name of the terminal when it is ready, or nothing and an error to the log.
[ -z "$_host" ] || { read -r _tty <"$_fifo"; rm -f "$_fifo"; }
[ -z "$_tee" ] || copy_errors
# The agent's own process records its identity before it execs the command, so every agent is recorded.
life() {
  exec 3>&-
  [ -z "$_group" ] || { echo 0 >"$_group/cgroup.procs"; } 2>/dev/null
  _mode=$1
  read -r _stat </proc/$_side/stat
  set -- ${_stat##*) }
  _sstart=${20}
  myself
  printf '{"epoch": %s, "keeper": {"pid": %s, "startTime": "%s", "bootId": "%s"}, "agent": {"pid": %s, "startTime": "%s", "bootId": "%s"}, "helper": {"pid": %s, "startTime": "%s", "bootId": "%s"}, "token": "%s", "detached": %s}\n' \
    "$_epoch" "$_keeper" "$_kstart" "$_boot" "$_pid" "$_start" "$_boot" "$_side" "$_sstart" "$_boot" "$_token" "$_mode" \
    >"$_dir/.life.json.$_keeper.0.tmp" &&
    mv -f "$_dir/.life.json.$_keeper.0.tmp" "$_dir/life.json" || exit 125
  cd "$_work" || exit 125
  export LAZARUS_MISSION="$_mission" LAZARUS_CELL="$_cell" LAZARUS_EPOCH="$_epoch" LAZARUS_LIFE="$_token" LAZARUS_HEARTBEAT="$_heart"
  umask "$_mask"
  PATH=$_path
}
if [ -n "$_host" ]; then
  # shellcheck disable=SC2016
  ( life true; [ -n "$_tty" ] || exit 125
    exec "$_setsid" /bin/sh -c 'exec 0<>"$1" 1>&0 2>&0; shift; exec "$@"' sh "$_tty" "$@" ) >&4 2>&4 4>&- 5>&-
elif [ -n "$_copy" ]; then
  # shellcheck disable=SC2094
  ( life false; exec 2>"$_fifo"; [ -z "$_both" ] || exec >&2; exec "$@" 4>&- 5>&- )
elif [ -n "$_log" ] && [ -z "$_tee" ]; then
  ( life true; exec "$@" ) >&4 2>&4 4>&- 5>&-
else
  ( life false; exec "$@" 2>&5 4>&- 5>&- )
fi
_status=$?
now
_ended=$_ms
kill -ALRM "$_side"
wait "$_side"
reap
[ -z "$_copy" ] || finish_copy
exec 2>/dev/null
_line=$(printf '{"epoch": %s, "status": %s, "ended_ms": %s, "leftovers": %s}' "$_epoch" "$_status" "$_ended" "$_left")
# Overwrite in place: needs no new block.
printf '%-250s\n' "$_line" 1<>"$_exit"
sync "$_exit" || sync
mv -f "$_exit" "$_dir/exit.json"
sync "$_dir" || sync
[ -z "$_group" ] || rmdir "$_group"
exit "$_status"
