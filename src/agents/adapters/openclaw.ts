// OpenClaw, its embedded agent (`openclaw agent --local`). The session id can be any text, and the same command continues it. The
// conversation is in a database that all sessions of an agent share: Lazarus reads it, but neither captures nor restores
// it. Without --local the gateway does the work, in another process.
import { dirname, join } from "node:path";
import type { Adapter, FailurePatterns, Invocation, Place } from "../adapter.ts";
import {
  asPrompt,
  type Grammar,
  hasOption,
  optionsOnly,
  optionValue,
  positionals,
  readWords,
  type Word,
  withNote,
} from "../arguments.ts";
import { NETWORK, NODE_NETWORK } from "../failure-patterns.ts";
import { piSteps } from "../pi-messages.ts";
import { asObject, jsonLinesReader, parseJson } from "../transcript.ts";

const OPTIONS: Grammar = {
  one: [
    ...[
      "--container",
      "--log-level",
      "--profile",
      "--agent",
      "--channel",
      "-m",
      "--message",
      "--message-file",
    ],
    ...["--model", "--reply-account", "--reply-channel", "--reply-to", "--session-id", "--session-key"],
    ...["-t", "--to", "--thinking", "--timeout", "--verbose"],
  ],
};
/** Options that choose the session. */
const SESSION_OPTIONS = ["--session-id", "--session-key", "-t", "--to"];
const PROMPT_OPTIONS = ["-m", "--message", "--message-file"];

function parse(args: readonly string[]): Invocation {
  const words = readWords(args, OPTIONS);
  const [command, sub] = positionals(words);
  const id = optionValue(words, "--session-id");
  return {
    isHeadless: true,
    prompt: optionValue(words, "-m", "--message") ?? null,
    session: id !== undefined ? { id } : hasOption(words, ...SESSION_OPTIONS) ? "newest" : null,
    isUtility:
      command !== "agent" ||
      sub !== undefined ||
      !hasOption(words, "--local") ||
      hasOption(words, "-h", "--help"),
  };
}

/** The options before `agent` are global. */
function withPrompt(args: readonly string[], session: string | null, prompt: string): readonly string[] {
  const words = readWords(args, OPTIONS);
  const at = words.findIndex(({ role, text }) => role === "positional" && text === "agent");
  const own = optionsOnly(words.slice(at), ...PROMPT_OPTIONS);
  const id = session === null || hasOption(words, ...SESSION_OPTIONS) ? [] : ["--session-id", session];
  return [...words.slice(0, at + 1).map(({ text }: Word) => text), ...own, ...id, "-m", prompt];
}

function isSessionId(text: string): boolean {
  return /^[A-Za-z0-9][\w.:-]{0,127}$/.test(text);
}

/** The database of the default agent and profile; the options that choose others are not recorded in a `Place`. */
function database({ env, home }: Place): string {
  const state = env.OPENCLAW_STATE_DIR || join(home, ".openclaw");
  return join(state, "agents", "main", "agent", "openclaw-agent.sqlite");
}

const FAILED = "^\\W*[\\w.-]+/\\S+ request failed \\(.*";
/** What it logs when no other model is left to try. */
const gaveUp = (reason: string) =>
  `^\\[model-fallback/decision\\] .*decision=candidate_failed .*reason=${reason} next=none\\b`;
const PATTERNS: FailurePatterns = {
  quota: [`${FAILED}(?:http 429|rate.limit)`, gaveUp("rate_limit")],
  overload: [`${FAILED}(?:http 5\\d\\d|overloaded|${NETWORK})`, ...NODE_NETWORK],
  auth: [
    `${FAILED}http 40[13]`,
    "^authentication failed \\(provider returned http 40[13]\\)",
    "^no api key found for provider\\b",
    gaveUp("auth"),
  ],
  // Only after it has tried to compact the conversation.
  permanent: ["^context overflow: prompt too large for the model\\b"],
};

export const openclaw: Adapter = {
  name: "openclaw",
  testedVersion: "2026.9.6",
  programs: ["openclaw"],
  packages: ["openclaw"],
  parse,
  sessionIds: "chosen",
  isSessionId,
  positionOnly: true,
  start: (args, session) => {
    const { isUtility, session: chosen } = parse(args);
    return isUtility || chosen !== null || session === null ? args : [...args, "--session-id", session];
  },
  resume: (args, session, note) =>
    parse(args).isUtility || !isSessionId(session) ? null : withPrompt(args, session, asPrompt(note)),
  restart: (args, session, note) => {
    const { isUtility, prompt } = parse(args);
    return isUtility ? args : withPrompt(args, session, withNote(note, prompt));
  },
  sessionFiles: (place, session, reader) => {
    const path = database(place);
    const exists = reader.list(dirname(path)).some(({ name }) => name === "openclaw-agent.sqlite");
    return exists && isSessionId(session) ? [{ path, name: "openclaw-agent.sqlite", kind: "shared" }] : [];
  },
  pathOf: () => null,
  findSessions: () => [],
  transcript: {
    ...jsonLinesReader(({ event_json: line }) => piSteps(asObject(parseJson(String(line))))),
    query:
      "SELECT event_json FROM transcript_events WHERE session_id = ? AND event_json IS NOT NULL ORDER BY seq",
  },
  patterns: PATTERNS,
  unknownSession: { exitCodes: [], patterns: [] },
  exitZeroMeansFinished: true,
  placeholder: null,
  hooks: { perRun: null, parse: () => [], install: () => [] },
  credentials: [],
};
