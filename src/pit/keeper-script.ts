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
    Math.max(1, Math.round(given.logLimitBytes)),
    Math.max(0, Math.round(given.logCount)),
    given.heartbeatFile,
    Math.max(1, Math.round(given.heartbeatSeconds)),
    Math.max(0, Math.round(given.leftoverGraceSeconds * 10)),
  ];
  return [...values.map(String), ...command];
}

export const KEEPER_SCRIPT =
  String.raw`# The keeper of one Lazarus agent: launches, waits, records. Made by Lazarus; never edited.
umask 077
dir=$1 epoch=$2 kstart=$3 boot=$4 mission=$5 cell=$6 work=$7 log=$8 limit=$9
shift 9
count=$1 heart=$2 every=$3 grace=$4
shift 4
keeper=$$
exec 5>&2 2>/dev/null
if [ -n "$log" ]; then exec 4>>"$log" || exec 4>/dev/null; fi

now() {
  t=$(date +%s%3N)
  case $t in *[!0-9]*) t=$(date +%s)000 ;; esac
}
# Sets pid and start of whoever calls: a subshell is a process of its own.
myself() {
  if read -r stat </proc/self/stat; then
    pid=\${stat%% *}
    set -- \${stat##*) }
    parent=$2 start=\${20}
  else
    pid=$(exec sh -c 'echo $PPID') start= parent=
  fi
}
log_size() {
  size=0
  while read -r key value; do [ "$key" = pos: ] && size=$value; done </proc/self/fdinfo/4 || size=$(wc -c <"$log")
}
# Copies the end and empties the file in place: the agent goes on writing to it.
rotate() {
  [ -n "$log" ] || return 0
  log_size
  [ "$size" -gt "$limit" ] || return 0
  n=$count
  while [ "$n" -gt 1 ]; do
    [ -f "$log.$((n - 1))" ] && mv -f "$log.$((n - 1))" "$log.$n"
    n=$((n - 1))
  done
  [ "$count" -gt 0 ] && tail -c "$limit" "$log" >"$log.1"
  : >"$log"
}
# Only when nobody else has said that it lives; fields of others stay.
beat() {
  [ -f "$heart" ] || return 0
  [ "$(grep -c '"timestamp"' "$heart")" = 1 ] || return 0
  now
  s=\${t%???}
  last=$(sed -n 's/.*"timestamp": *\([0-9]*\).*/\1/p' "$heart")
  [ "$((s - \${last:-0}))" -ge "$((every - 1))" ] || return 0
  tmp=\${heart%/*}/.\${heart##*/}.$keeper.0.tmp
  sed -e '/^ *"keeper_beat": [0-9.]*,$/d' -e 's/"keeper_beat": *[0-9.]*, *//' \
    -e 's/^\( *\)"timestamp": *[-+0-9.eE]*/\1"keeper_beat": '"$s"',\
\1"timestamp": '"$s"'/' -e 's/{ *"timestamp": *[-+0-9.eE]*/{"keeper_beat": '"$s"', "timestamp": '"$s"'/' \
    -e 's/"status": *"bootstrapped"/"status": "running"/' "$heart" >"$tmp" && mv -f "$tmp" "$heart"
  rm -f "$tmp"
}
# Beside the agent: heartbeats and the log's size. Ends with the keeper, or when it is gone.
side() {
  # Not as redirections of the call: the shell would keep copies to put back, and with them the lock.
  exec </dev/null >/dev/null 3>&- 5>&-
  trap 'kill $!; wait $!; exit 0' TERM
  tick=10 age=$every was=0
  [ "$every" -lt 10 ] && tick=$every
  slow=$tick
  while :; do
    if [ "$age" -ge "$every" ]; then beat; age=0; fi
    sleep "$tick" &
    wait $!
    myself
    [ -z "$parent" ] || [ "$parent" = "$keeper" ] || exit 0
    age=$((age + tick))
    [ -n "$log" ] || continue
    rotate
    # A flood is looked at every second.
    if [ "$((size - was))" -gt "$((limit / 4))" ]; then tick=1; else tick=$slow; fi
    was=$size
    [ "$size" -gt "$limit" ] && was=0
  done
}
children() {
  kids=
  read -r kids </proc/$keeper/task/$keeper/children || [ -n "$kids" ]
}
# Everything that the agent left behind: TERM, a grace, KILL, until none is left. Keepers of other missions are spared.
reap() {
  left=0 n=0 seen=
  while children; do
    alive=0
    for kid in $kids; do
      stat= line=
      read -r stat </proc/$kid/stat
      case \${stat##*) } in Z* | X*) continue ;; esac
      read -r line </proc/$kid/cmdline
      case $line in sh*/keeper-*.sh*) continue ;; esac
      alive=1
      if [ "$n" -ge "$grace" ]; then kill -KILL "$kid"; fi
      case $seen in *" $kid "*) continue ;; esac
      seen="$seen $kid " left=$((left + 1))
      kill -TERM "$kid"
      kill -CONT "$kid"
    done
    [ "$alive" = 1 ] || break
    n=$((n + 1))
    [ "$n" -gt "$((grace + 300))" ] && break
    # Also takes the dead off the process table.
    if [ "$n" -lt 5 ]; then sleep 0.02; else sleep 0.1; fi
  done
}

# Room for the exit, taken now: it must be stored also when the agent fills the disk.
exit_file=$dir/.exit.$keeper
printf '%-250s\n' '{}' >"$exit_file"
side &
side=$!
# Caught, not ignored: the agent gets the default again. After the fork above: a SIGTERM that finds our trap in a shell
# that has just been forked is lost.
trap : TERM INT HUP QUIT USR1 USR2
# The agent's own process says who it is before it becomes the agent, so no agent is ever unrecorded.
life() {
  exec 3>&-
  myself
  printf '{"epoch": %s, "keeper": {"pid": %s, "startTime": "%s", "bootId": "%s"}, "agent": {"pid": %s, "startTime": "%s", "bootId": "%s"}, "detached": %s}\n' \
    "$epoch" "$keeper" "$kstart" "$boot" "$pid" "$start" "$boot" "$1" >"$dir/.life.$keeper" &&
    mv -f "$dir/.life.$keeper" "$dir/life.json" || exit 125
  cd "$work" || exit 125
  export LAZARUS_MISSION="$mission" LAZARUS_CELL="$cell" LAZARUS_EPOCH="$epoch" LAZARUS_HEARTBEAT="$heart"
}
if [ -n "$log" ]; then
  ( life true; exec "$@" ) >&4 2>&4 4>&- 5>&-
else
  ( life false; exec "$@" 2>&5 5>&- )
fi
status=$?
now
ended=$t
kill "$side"
wait "$side"
reap
exec 2>/dev/null
line=$(printf '{"epoch": %s, "status": %s, "ended_ms": %s, "leftovers": %s}' "$epoch" "$status" "$ended" "$left")
# In place, over what is there: no new block is needed.
printf '%-250s\n' "$line" 1<>"$exit_file"
sync "$exit_file" || sync
mv -f "$exit_file" "$dir/exit.json"
sync "$dir" || sync
exit "$status"
`.replaceAll("\\${", "${");
