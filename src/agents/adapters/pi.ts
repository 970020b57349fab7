// Pi. It chooses its own session id, which an extension reports; one JSONL per session, below a directory named after the
// working directory. Without hooks the newest file of that directory is taken.
import { join } from "node:path";
import type { Adapter, FailurePatterns, Invocation, Place, SessionFile, SessionReader } from "../adapter.ts";
import {
  asPrompt,
  type Grammar,
  hasOption,
  isUuid,
  optionsOnly,
  optionValue,
  positionals,
  readWords,
  type Word,
  withNote,
} from "../arguments.ts";
import { sessionsInDirectory } from "../directory-sessions.ts";
import { NETWORK, NODE_NETWORK } from "../failure-patterns.ts";
import { ownFile } from "../own-file.ts";
import { piSteps } from "../pi-messages.ts";
import { parseReported, reporterSource } from "../reporting-plugin.ts";
import { jsonLinesReader } from "../transcript.ts";

const OPTIONS: Grammar = {
  one: [
    ...["--provider", "--model", "--api-key", "--system-prompt", "--append-system-prompt", "--mode"],
    ...[
      "--session",
      "--fork",
      "--session-dir",
      "--models",
      "--tools",
      "-t",
      "--thinking",
      "--extension",
      "-e",
    ],
    ...["--skill", "--prompt-template", "--theme", "--export"],
  ],
  maybe: ["--list-models"],
};
/** Short options of several letters, which are not several short options. */
const LONG_NAMES: Readonly<Record<string, string>> = {
  "-nt": "--no-tools",
  "-nbt": "--no-builtin-tools",
  "-ne": "--no-extensions",
  "-ns": "--no-skills",
  "-np": "--no-prompt-templates",
  "-nc": "--no-context-files",
};
const COMMANDS = ["install", "remove", "uninstall", "update", "list", "config"];
const ELSEWHERE = ["-h", "--help", "-v", "--version", "--list-models", "--export", "--no-session"];
const SESSION_OPTIONS = ["--session", "--fork", "-c", "--continue", "-r", "--resume"];
const FILE_NAME = /^[\dTZ-]+_([0-9a-f-]{36})\.jsonl$/;

function read(args: readonly string[]): Word[] {
  return readWords(
    args.map((arg) => LONG_NAMES[arg] ?? arg),
    OPTIONS,
  );
}

function parse(args: readonly string[]): Invocation {
  const words = read(args);
  const [first] = positionals(words);
  const mode = optionValue(words, "--mode");
  return {
    isHeadless: hasOption(words, "-p", "--print") || mode === "json" || mode === "rpc",
    prompt: messages(words)[0] ?? null,
    session: chosenSession(words),
    isUtility: hasOption(words, ...ELSEWHERE) || (first !== undefined && COMMANDS.includes(first)),
  };
}

/** `@file` is an attachment of the first message. */
function messages(words: readonly Word[]): string[] {
  return positionals(words).filter((word) => !word.startsWith("@"));
}

function chosenSession(words: readonly Word[]): Invocation["session"] {
  const named = optionValue(words, "--session");
  const id = named === undefined ? undefined : (FILE_NAME.exec(named.split("/").at(-1)!)?.[1] ?? named);
  if (id !== undefined && isUuid(id)) return { id };
  return hasOption(words, "--session", "-c", "--continue", "-r", "--resume") ? "newest" : null;
}

/** Messages come from stdin, which is empty in a later life. */
function cannotPrompt(args: readonly string[]): boolean {
  return parse(args).isUtility || optionValue(read(args), "--mode") === "rpc";
}

function sessionsDirectory({ cwd, env, home }: Place): string {
  if (env.PI_CODING_AGENT_SESSION_DIR) return env.PI_CODING_AGENT_SESSION_DIR;
  const name = `--${cwd.replace(/^\//, "").replaceAll(/[/:]/g, "-")}--`;
  return join(env.PI_CODING_AGENT_DIR || join(home, ".pi", "agent"), "sessions", name);
}

function sessionFiles(place: Place, session: string, reader: SessionReader): SessionFile[] {
  const directory = sessionsDirectory(place);
  return reader
    .list(directory)
    .filter(({ name }) => FILE_NAME.exec(name)?.[1] === session)
    .map(({ name }) => ({ path: join(directory, name), name, kind: "lines" }));
}

function findSessions(place: Place, sinceMs: number, reader: SessionReader): string[] {
  const idOf = (name: string) => FILE_NAME.exec(name)?.[1];
  return sessionsInDirectory(place, sessionsDirectory(place), sinceMs, reader, idOf);
}

const PATTERNS: FailurePatterns = {
  quota: ["^(?:error: )?429 "],
  overload: ["^(?:error: )?5\\d\\d ", `^(?:error: )?${NETWORK}`, ...NODE_NETWORK],
  auth: ["^(?:error: )?40[13] ", "^no api key found\\b"],
  permanent: ["^(?:error: )?400 .*(?:too long|context)"],
};

function extension(command: readonly string[], directory: string | null): string {
  return `${reporterSource(command, directory)}
const call = ({ toolCallId: id, toolName: tool, args }) => ({
  id, tool, command: args?.command, summary: args?.path ?? args?.command ?? JSON.stringify(args ?? {}),
});
const QUIET = ["read", "grep", "find", "ls"];
export default (pi) => {
  const on = (name, handle) => { try { pi.on(name, handle); } catch {} };
  on("session_start", (_, { sessionManager }) => {
    report({ kind: "session", session: sessionManager.getSessionId(), transcript: sessionManager.getSessionFile() });
  });
  on("before_agent_start", () => report({ kind: "prompt" }));
  on("tool_execution_start", (event) => { if (!QUIET.includes(event.toolName)) report({ kind: "tool-start", call: call(event) }); });
  on("tool_execution_end", (event) => { if (!QUIET.includes(event.toolName)) ended(call(event)); });
  on("session_before_compact", () => report({ kind: "compaction" }));
  on("agent_end", ({ messages }) => {
    const { stopReason, errorMessage } = messages.at(-1) ?? {};
    if (stopReason === "error") report({ kind: "failure", message: String(errorMessage) });
    else if (stopReason === "stop") report({ kind: "turn-end" });
  });
  on("session_shutdown", ({ reason }) => report({ kind: "session-end", reason }));
};
`;
}

export const pi: Adapter = {
  name: "pi",
  testedVersion: "0.73.1",
  programs: ["pi"],
  packages: ["@mariozechner/pi-coding-agent"],
  parse,
  sessionIds: "found",
  isSessionId: isUuid,
  start: (args) => args,
  resume: (args, session, note) =>
    cannotPrompt(args) || !isUuid(session)
      ? null
      : [...optionsOnly(read(args), ...SESSION_OPTIONS), "--session", session, asPrompt(note)],
  restart: (args, _, note) => {
    if (cannotPrompt(args)) return args;
    const words = read(args);
    const [first = null, ...more] = messages(words);
    const files = positionals(words).filter((word) => word.startsWith("@"));
    return [...optionsOnly(words, ...SESSION_OPTIONS), ...files, withNote(note, first), ...more];
  },
  sessionFiles,
  pathOf: (place, session, name) =>
    isUuid(session) && FILE_NAME.exec(name)?.[1] === session ? join(sessionsDirectory(place), name) : null,
  findSessions,
  transcript: jsonLinesReader(piSteps),
  patterns: PATTERNS,
  unknownSession: { exitCodes: [1], patterns: ["^no session found matching\\b"] },
  exitZeroMeansFinished: true,
  placeholder: "No result provided",
  hooks: {
    perRun: (command, directory) => ({
      args: ["-e", join(directory, "pi.ts")],
      env: {},
      files: [{ name: "pi.ts", text: extension(command, directory) }],
    }),
    parse: parseReported(PATTERNS),
    install: (place, command) => {
      const agentDirectory = place.env.PI_CODING_AGENT_DIR || join(place.home, ".pi", "agent");
      return [ownFile(join(agentDirectory, "extensions", "lazarus.ts"), extension(command, null))];
    },
  },
  credentials: [".pi/agent/auth.json"],
};
