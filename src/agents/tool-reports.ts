// The hooks at a prompt, and before and after a tool call: a shell script instead of `lazarus hook`, because the agent waits for them, and a Node
// process costs 30 ms of CPU, the script 5. It appends a line to hooks.jsonl in one write: what the CLI passed, which the
// adapter parses when the line is read (hook-lines.ts). `lazarus hook` gets what needs more than a line: a call that may delete
// many files, a due heartbeat, an agent within the agent (its session is another one, so it must be examined), and input that the
// script does not understand. A start is synced, as by `lazarus hook`. An end is not: without it, a call counts as cut off, and
// is checked once more. Pure: text for a file.
import { join } from "node:path";
import { shellWord } from "../platform/shell-word.ts";
import type { HookSetup } from "./adapter.ts";
import { DANGEROUS_TEXT } from "./dangerous-call.ts";

const NAME = "tool-call.sh";
/** Next to the script: `EPOCH SECONDS SESSION`, the session that this life reported and how often a heartbeat is due. */
const SESSION = "session";
/** One write, with the rest of the line, in all shells. */
const LIMIT_BYTES = 3500;

/** What to look for in the JSON text that the CLI passes. A quote within a value is escaped, so a match is no part of one. */
export interface CallTexts {
  /** The key of the session's id. */
  readonly session: string;
  /**
   * What identifies a call that has ended: an id, whose key is the last one (`lastId`) or which follows a text at the start (`id`),
   * or all that precedes the key `output`.
   */
  readonly ended: { readonly lastId: string } | { readonly id: string } | { readonly output: string };
}

export interface CallCommands {
  /** Commands of the hooks; a CLI that does not name the event in its input needs it as a further argument. */
  readonly started: readonly string[];
  readonly ended: readonly string[];
  /** Qwen reports one after each tool call. */
  readonly prompted: readonly string[];
}

export interface ToolReports extends CallCommands {
  readonly path: string;
  readonly file: HookSetup["files"][number];
}

/** `command` runs `lazarus hook AGENT`; `directory` is that of the setup's files. */
export function toolReports(
  agent: string,
  command: readonly string[],
  directory: string,
  texts: CallTexts,
): ToolReports {
  const path = join(directory, NAME);
  // A shell that cannot read its script exits with 2, with which CLIs block the call.
  const choice = `if [ -r "$0" ]; then . "$0"; else shift; exec ${command.map(shellWord).join(" ")} "$@"; fi`;
  const call = (moment: string) => ["/bin/sh", "-c", choice, path, moment];
  return {
    path,
    started: call("started"),
    ended: call("ended"),
    prompted: call("prompted"),
    file: { name: NAME, text: scriptOf(agent, command, texts) },
  };
}

/** Installed hooks learn from this variable that a run passes its own (`run`), or which script reports tool calls. */
const VARIABLE = "LAZARUS_HOOKS";

/** Where the CLI reads only hooks that are installed. */
export function forInstalledHooks({ path, file }: ToolReports): HookSetup {
  return { args: [], env: {}, installedEnv: { [VARIABLE]: path }, files: [file] };
}

/** An installed hook: `command`, unless a run passes its own hooks. */
export function silentInRun(command: readonly string[]): readonly string[] {
  return ["/bin/sh", "-c", `[ "$${VARIABLE}" = run ] || exec "$@"`, "sh", ...command];
}

/** Installed hooks that the script can replace: the script, in a run that has one. */
export function installedCalls(command: readonly string[]): CallCommands {
  const call = (moment: string) => {
    const choice = `case $${VARIABLE} in run) exit ;; /*) [ -r "$${VARIABLE}" ] && shift "$1" && exec /bin/sh "$${VARIABLE}" ${moment} "$@" ;; esac; shift; exec "$@"`;
    return ["/bin/sh", "-c", choice, "sh", String(command.length + 1), ...command];
  };
  return { started: call("started"), ended: call("ended"), prompted: call("prompted") };
}

/** For the script: the session that is this life's own. `directory` is that of the agent in run_dir. */
export function reportedSession(
  directory: string,
  epoch: number,
  heartbeatSeconds: number,
  session: string,
): { readonly path: string; readonly text: string } {
  return {
    path: join(directory, "hooks", SESSION),
    text: `${epoch} ${Math.floor(heartbeatSeconds)} ${session}\n`,
  };
}

function scriptOf(agent: string, command: readonly string[], { session, ended }: CallTexts): string {
  return `# Written by Lazarus for one run; it may be deleted at any time.
LC_ALL=C
umask 077
unset input text # If the environment has them, every program would get the input in its own, and a long one could not start.
moment=$1
shift
input=$(cat)
lines=\${0%/*}/../hooks.jsonl
newline='
'
# A full disk may have torn the line before.
append() { { printf '%s' "$newline$1$newline" >> "$lines"; } 2> /dev/null; }

# Appends $1 as it is, if it was passed to this life's own session.
report() {
  [ \${#1} -le ${LIMIT_BYTES} ] || return
  case $LAZARUS_EPOCH in '' | *[!0-9]*) return 1 ;; esac
  { read -r epoch seconds session < "\${0%/*}/${SESSION}"; } 2> /dev/null || return
  [ "$epoch" = "$LAZARUS_EPOCH" ] || return
  case $1 in *"$newline"*) return 1 ;; esac
  case $1 in *'"${session}":"'"$session"'"'*) ;; *) return 1 ;; esac
  case $1 in '{'*'}') ;; *) return 1 ;; esac
  now=$(date +%s)
  if [ "$moment" = started ]; then
    { beat=$(date -r "$LAZARUS_HEARTBEAT" +%s); } 2> /dev/null || return
    [ "$beat" -le "$now" ] && [ $((now - beat)) -lt "$seconds" ] || return
  fi
  append '{"at_ms":'"\${now}000"',"epoch":'"$epoch"',"agent":"${agent}","event":"'"$event"'","input":'"$1}"
}

started() {
  case $input in ${DANGEROUS_TEXT.join(" | ")}) return 1 ;; esac
  report "$input" || return
  { sync -d "$lines" || sync; } 2> /dev/null
}

ended() {
${"output" in ended ? endOf(ended.output) : endOfId(ended)}
}

prompted() { report "$input"; }

event=$1
case $event in *[!A-Za-z]*) ;; *) "$moment" && exit 0 ;; esac
printf '%s' "$input" | ${command.map(shellWord).join(" ")} "$@"
`;
}

function endOfId(ended: { readonly lastId: string } | { readonly id: string }): string {
  const [cut, text, trim] =
    "lastId" in ended ? ["tail -c 400", `"${ended.lastId}":"`, "##"] : ["head -c 2000", ended.id, "#"];
  return `  text=$(printf '%s' "$input" | ${cut})
  case $text in *'${text}'*) ;; *) return 1 ;; esac
  id=\${text${trim}*'${text}'}
  id=\${id%%'"'*}
  case $id:$LAZARUS_EPOCH in :* | *: | *[!A-Za-z0-9_:-]*) return 1 ;; esac
  append '{"at_ms":'"$(date +%s)000"',"epoch":'"$LAZARUS_EPOCH"',"kind":"tool-end","call":{"id":"'"$id"'","tool":"","summary":"","command":null}}'`;
}

function endOf(output: string): string {
  return `  text=$(printf '%s' "$input" | head -c ${LIMIT_BYTES})
  case $text in *',"${output}":'*) ;; *) return 1 ;; esac
  text=\${text%%',"${output}":'*}
  report "$text}"`;
}
