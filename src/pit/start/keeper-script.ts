// The keeper: a POSIX sh script that owns one agent process. It launches, waits and records, so that agents outlive a
// restart of the pit and a detached one costs megabytes less than a Node process would. As text, so that the bundle has
// it, and stored under its own digest: an upgrade never changes the script under a running shell.
//
// What it holds open: 3 the life lock, for as long as it lives; 4 the log; 5 the caller's stderr. The agent gets none of
// them. It is a child subreaper (keeper-launch.ts saw to that before it became this shell), so what the agent leaves
// behind becomes its child, and it ends all of it before it ends itself.
//
// Exit statuses are the shell's: 128 + n for signal n. A program that exits with such a code by itself is taken for
// killed, as every shell takes it.

/** In this order, then the agent's command. */
export interface KeeperArguments {
  readonly directory: string;
  readonly epoch: number;
  readonly keeperStart: string;
  readonly bootId: string;
  readonly mission: string;
  readonly cell: string;
  readonly workingDirectory: string;
  /** Empty in the foreground: output passes through. */
  readonly log: string;
  readonly logLimitBytes: number;
  readonly logCount: number;
  readonly heartbeatFile: string;
  readonly heartbeatSeconds: number;
  readonly leftoverGraceSeconds: number;
}

export function keeperArguments(given: KeeperArguments, command: readonly string[]): string[] {
  const values = [
    given.directory,
    given.epoch,
    given.keeperStart,
    given.bootId,
    given.mission,
    given.cell,
    given.workingDirectory,
    given.log,
    whole(given.logLimitBytes, 1),
    Math.min(whole(given.logCount, 0), MOST_LOGS),
    given.heartbeatFile,
    whole(given.heartbeatSeconds, 1),
    whole(given.leftoverGraceSeconds * 10, 0),
  ];
  return [...values.map(String), ...command];
}

const MOST_LOGS = 1000;
/** What every shell can calculate with; a larger number would be written with an exponent, and end the keeper. */
const MOST = 1e15;

function whole(value: number, least: number): number {
  return Math.min(Math.max(least, Math.round(value)), MOST);
}

export const KEEPER_SCRIPT =
  String.raw`# The keeper of one Lazarus agent: launches, waits, records. Made by Lazarus; never edited.
# Names begin with _: a variable of the agent's own environment that the keeper sets would reach the agent changed.
_mask=$(umask) _path=$PATH
umask 077
PATH=/usr/bin:/bin:$PATH
_dir=$1 _epoch=$2 _kstart=$3 _boot=$4 _mission=$5 _cell=$6 _work=$7 _log=$8 _limit=$9
shift 9
_count=$1 _heart=$2 _every=$3 _grace=$4
shift 4
_keeper=$$
exec 5>&2 2>/dev/null
# Asked before: a redirection of exec that fails ends the shell, and a FIFO would hold it up.
if [ ! -p "$_log" ] && true >>"$_log"; then exec 4>>"$_log"; elif [ -n "$_log" ]; then exec 4>/dev/null; fi
# The open log, also when its name is gone or another's.
_out=/proc/self/fd/4
[ -e "$_out" ] || _out=$_log

now() {
  _ms=$(date +%s%3N)
  case $_ms in *[!0-9]*) _ms=$(date +%s)000 ;; esac
}
# Sets _pid, _start and _parent of whoever calls: a subshell is a process of its own.
myself() {
  if read -r _stat </proc/self/stat; then
    _pid=\${_stat%% *}
    set -- \${_stat##*) }
    _parent=$2 _start=\${20}
  else
    _pid=$(exec sh -c 'echo $PPID') _start= _parent=
  fi
}
# Where the last write ended; it stays there when the file is emptied, so a large one is looked at again.
log_size() {
  _size=
  while read -r _key _value; do [ "$_key" = pos: ] && _size=$_value; done </proc/self/fdinfo/4
  [ "\${_size:-$((_limit + 1))}" -le "$_limit" ] || _size=$(wc -c <"$_out")
  _size=$((\${_size:-0}))
}
# Copies the end and empties the file in place: the agent goes on writing to it.
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
# Only when nobody else has said that it lives; fields of others stay.
beat() {
  [ -f "$_heart" ] || return 0
  [ "$(grep -c '"timestamp"' "$_heart")" = 1 ] || return 0
  now
  _s=\${_ms%???}
  _last=$(sed -n 's/.*"timestamp": *\([0-9]*\).*/\1/p' "$_heart")
  [ "$((_s - \${_last:-0}))" -ge "$((_every - 1))" ] || return 0
  _tmp=\${_heart%/*}/.\${_heart##*/}.$_keeper.0.tmp
  sed -e '/^ *"keeper_beat": [0-9.]*,$/d' -e 's/"keeper_beat": *[0-9.]*, *//' \
    -e 's/^\( *\)"timestamp": *[-+0-9.eE]*/\1"keeper_beat": '"$_s"',\
\1"timestamp": '"$_s"'/' -e 's/{ *"timestamp": *[-+0-9.eE]*/{"keeper_beat": '"$_s"', "timestamp": '"$_s"'/' \
    -e 's/"status": *"bootstrapped"/"status": "running"/' "$_heart" >"$_tmp" && mv -f "$_tmp" "$_heart"
  rm -f "$_tmp"
}
orphaned() {
  myself
  [ -n "$_parent" ] && [ "$_parent" != "$_keeper" ]
}
# KILL: another signal would be lost on a sleep that is still a shell just forked, with our traps. Where none was begun,
# yash says 0, which is all of our group.
leave() {
  case $! in
    '' | 0) ;;
    *) kill -KILL $!; wait $! ;;
  esac
  exit 0
}
# Beside the agent: heartbeats and the log's size. Ends when the keeper says so with ALRM, or is gone; what an agent
# sends to its whole process group is not meant for it.
side() {
  # Not as redirections of the call: the shell would keep copies to put back, and with them the lock.
  exec </dev/null >/dev/null 3>&- 5>&-
  trap leave ALRM
  trap 'orphaned && leave' TERM HUP USR1 USR2
  _tick=10 _age=$_every _was=0
  [ "$_every" -lt 10 ] && _tick=$_every
  _slow=$_tick
  while :; do
    if [ "$_age" -ge "$_every" ]; then beat; _age=0; fi
    sleep "$_tick" &
    wait $!
    orphaned && exit 0
    _age=$((_age + _tick))
    [ -n "$_log" ] || continue
    rotate
    # A flood is looked at every second.
    if [ "$((_size - _was))" -gt "$((_limit / 4))" ]; then _tick=1; else _tick=$_slow; fi
    _was=$_size
    [ "$_size" -gt "$_limit" ] && _was=0
  done
}
children() {
  _kids=
  read -r _kids </proc/$_keeper/task/$_keeper/children || [ -n "$_kids" ]
}
# Everything that the agent left behind: TERM, a grace, KILL, until none is left. Keepers of other missions are spared.
reap() {
  _left=0 _n=0 _seen=
  while children; do
    _alive=0
    for _kid in $_kids; do
      _stat= _line=
      read -r _stat </proc/$_kid/stat
      case \${_stat##*) } in Z* | X*) continue ;; esac
      read -r _line </proc/$_kid/cmdline
      case $_line in sh*/keeper-*.sh*) continue ;; esac
      _alive=1
      if [ "$_n" -ge "$_grace" ]; then kill -KILL "$_kid"; fi
      case $_seen in *" $_kid "*) continue ;; esac
      _seen="$_seen $_kid " _left=$((_left + 1))
      kill -TERM "$_kid"
      kill -CONT "$_kid"
    done
    [ "$_alive" = 1 ] || break
    _n=$((_n + 1))
    [ "$_n" -gt "$((_grace + 300))" ] && break
    # Also takes the dead off the process table.
    if [ "$_n" -lt 5 ]; then sleep 0.02; else sleep 0.1; fi
  done
}

# Room for the exit, taken now: it must be stored also when the agent fills the disk.
_exit=$_dir/.exit.json.$_keeper.0.tmp
printf '%-250s\n' '{}' >"$_exit"
# Ignored until the side has traps of its own: the agent may be at work, and signal its whole process group, before that.
trap '' TERM HUP USR1 USR2
side &
_side=$!
# Caught, not ignored: the agent gets the default again. After the fork above: a signal that finds our trap in a shell
# that has just been forked is lost.
trap : TERM INT HUP QUIT USR1 USR2
# The agent's own process says who it is before it becomes the agent, so no agent is ever unrecorded.
life() {
  exec 3>&-
  myself
  printf '{"epoch": %s, "keeper": {"pid": %s, "startTime": "%s", "bootId": "%s"}, "agent": {"pid": %s, "startTime": "%s", "bootId": "%s"}, "detached": %s}\n' \
    "$_epoch" "$_keeper" "$_kstart" "$_boot" "$_pid" "$_start" "$_boot" "$1" >"$_dir/.life.json.$_keeper.0.tmp" &&
    mv -f "$_dir/.life.json.$_keeper.0.tmp" "$_dir/life.json" || exit 125
  cd "$_work" || exit 125
  export LAZARUS_MISSION="$_mission" LAZARUS_CELL="$_cell" LAZARUS_EPOCH="$_epoch" LAZARUS_HEARTBEAT="$_heart"
  umask "$_mask"
  PATH=$_path
}
if [ -n "$_log" ]; then
  ( life true; exec "$@" ) >&4 2>&4 4>&- 5>&-
else
  ( life false; exec "$@" 2>&5 5>&- )
fi
_status=$?
# For a death by signal yash counts from 384.
[ "$_status" -gt 384 ] && _status=$((_status - 256))
now
_ended=$_ms
kill -ALRM "$_side"
wait "$_side"
reap
exec 2>/dev/null
_line=$(printf '{"epoch": %s, "status": %s, "ended_ms": %s, "leftovers": %s}' "$_epoch" "$_status" "$_ended" "$_left")
# In place, over what is there: no new block is needed.
printf '%-250s\n' "$_line" 1<>"$_exit"
sync "$_exit" || sync
mv -f "$_exit" "$_dir/exit.json"
sync "$_dir" || sync
exit "$_status"
`.replaceAll("\\${", "${");
