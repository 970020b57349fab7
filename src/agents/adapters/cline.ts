// Cline. It chooses its own session id; a session is a directory with its messages as one JSON document. It resumes only with a
// terminal (`-i`), where it ignores a prompt and waits: without one it exits 1, so a headless command starts over. Its hub is a
// separate process.
// Hooks are executables in ~/.cline/hooks, which `lazarus install cline` creates.
import { join } from "node:path";
import { isJsonObject, type JsonObject } from "../../platform/json-file.ts";
import { shellWord } from "../../platform/shell-word.ts";
import type {
  Adapter,
  FailurePatterns,
  HookEvent,
  Invocation,
  Place,
  SessionReader,
  TranscriptText,
} from "../adapter.ts";
import {
  type Grammar,
  hasOption,
  optionsOnly,
  optionValue,
  positionals,
  readWords,
  withNote,
} from "../arguments.ts";
import { NETWORK } from "../failure-patterns.ts";
import { ownFile } from "../own-file.ts";
import { forInstalledHooks, installedCalls, toolReports } from "../tool-reports.ts";
import {
  asArray,
  asObject,
  asText,
  jsonLinesReader,
  parseJson,
  type Step,
  textOf,
  timeMs,
  toolCall,
} from "../transcript.ts";

const OPTIONS: Grammar = {
  one: [
    ...[
      "--auto-approve",
      "-c",
      "--cwd",
      "--compaction",
      "--id",
      "-P",
      "--provider",
      "-k",
      "--key",
      "-m",
      "--model",
    ],
    ...["-s", "--system", "-t", "--timeout", "--config", "--data-dir", "--hooks-dir"],
  ],
  maybe: ["--thinking", "--retries"],
};
const COMMANDS = [
  ...[
    "auth",
    "config",
    "plugin",
    "skill",
    "connect",
    "mcp",
    "doctor",
    "history",
    "h",
    "hook",
    "schedule",
    "hub",
  ],
  ...["dashboard", "update", "version", "kanban"],
];
/** With these, the conversation is elsewhere or belongs to another process. */
const ELSEWHERE = ["-V", "--version", "-h", "--help", "-z", "--zen", "--acp", "--update", "--kanban"];

function isSessionId(text: string): boolean {
  return /^\d{10,16}_\w{3,32}$/.test(text);
}

function parse(args: readonly string[]): Invocation {
  const words = readWords(args, OPTIONS);
  const [prompt = null] = positionals(words);
  const id = optionValue(words, "--id");
  return {
    isHeadless: prompt !== null && !hasOption(words, "-i", "--tui"),
    prompt,
    session: id === undefined ? null : { id },
    isUtility: hasOption(words, ...ELSEWHERE) || (prompt !== null && COMMANDS.includes(prompt)),
  };
}

function dataDirectory({ env, home }: Place): string {
  return env.CLINE_DATA_DIR || join(home, ".cline", "data");
}

const fileNames = (session: string) => [`${session}.messages.json`, `${session}.json`];

function sessionDirectory(place: Place, session: string): string {
  return join(dataDirectory(place), "sessions", session);
}

const HEAD_BYTES = 64 * 1024;

function findSessions(place: Place, sinceMs: number, reader: SessionReader): string[] {
  return reader
    .list(sessionDirectory(place, ""))
    .filter(({ name }) => {
      if (!isSessionId(name) || Number(name.split("_")[0]) < sinceMs) return false;
      const head = reader.head(join(sessionDirectory(place, name), `${name}.json`), HEAD_BYTES) ?? "";
      const cwd = /"cwd":\s*("(?:[^"\\]|\\.)*")/.exec(head)?.[1];
      return cwd !== undefined && JSON.parse(cwd) === place.cwd;
    })
    .map(({ name }) => name)
    .sort();
}

/** The messages are one document, which is replaced as a whole: read as if each were a line. */
function asLines(files: readonly TranscriptText[]): TranscriptText[] {
  return files
    .filter(({ name }) => name.endsWith(".messages.json"))
    .map(({ name, text }) => {
      const document = parseJson(text);
      const lines = asArray(asObject(document).messages).map((message) => JSON.stringify(message));
      return { name, text: isJsonObject(document) ? `${lines.join("\n")}\n` : `${text}\n` };
    });
}

function messageSteps(message: JsonObject): Step[] {
  const atMs = timeMs(message.ts);
  const parts = asArray(message.content).map(asObject);
  const ofType = (type: string) => parts.filter((part) => part.type === type);
  const text = textOf(message.content);
  // A request that failed, for the user: the model has not responded.
  if (asObject(message.metadata).displayOnly === true) return [{ kind: "system", text, atMs }];
  if (message.role === "assistant") {
    const calls = ofType("tool_use");
    return [
      { kind: "response", id: asText(message.id) || null, text, ends: calls.length === 0, atMs },
      ...calls.map(({ id, name, input }): Step => {
        return { kind: "call", call: toolCall(asText(id) || null, asText(name), firstCommand(input)), atMs };
      }),
    ];
  }
  const results = ofType("tool_result");
  if (results.length === 0) return [{ kind: "prompt", text, atMs }];
  return results.map(({ tool_use_id: id, content }): Step => {
    return {
      kind: "result",
      id: asText(id) || null,
      text: asText(content) || JSON.stringify(content ?? ""),
      atMs,
    };
  });
}

const MESSAGES = jsonLinesReader(messageSteps);

/** `run_commands` takes a list; a list of several is one script. */
function firstCommand(input: unknown): unknown {
  const { commands } = asObject(input);
  return Array.isArray(commands) ? { command: commands.map(String).join("\n") } : input;
}

/** Cline prints the provider's message alone, without the status. */
const PATTERNS: FailurePatterns = {
  quota: ["^error: (?:rate limit reached|too many requests|quota exceeded)"],
  overload: [
    "^error: (?:overloaded|service unavailable|internal server error|bad gateway)",
    `^error: .*${NETWORK}`,
  ],
  auth: ["^error: (?:unauthorized|invalid api key|incorrect api key)"],
  // Only after it has compacted the conversation once.
  permanent: ["^error: .*(?:maximum context length|context window|too long)"],
};

function parseHook(event: string, input: JsonObject): readonly HookEvent[] {
  const call = (key: string) => {
    const { id, name, input: args } = asObject(input[key]);
    return toolCall(asText(id) || null, asText(name), firstCommand(args));
  };
  switch (event) {
    case "TaskStart":
    case "TaskResume": {
      const session = asText(asObject(input.sessionContext).rootSessionId) || asText(input.taskId);
      return isSessionId(session) ? [{ kind: "session", session, transcript: null }] : [];
    }
    case "UserPromptSubmit":
      return [{ kind: "prompt" }];
    case "PreToolUse":
      return [{ kind: "tool-start", call: call("tool_call") }];
    case "PostToolUse":
      return [{ kind: "tool-end", call: call("tool_result") }];
    case "TaskComplete":
      return [{ kind: "turn-end" }];
    default:
      return [];
  }
}

export const cline: Adapter = {
  name: "cline",
  testedVersion: "3.0.65",
  programs: ["cline"],
  packages: ["cline"],
  parse,
  sessionIds: "found",
  isSessionId,
  start: (args) => args,
  resume: (args, session) => {
    const { isUtility, isHeadless } = parse(args);
    if (isUtility || isHeadless || !isSessionId(session)) return null;
    return [...optionsOnly(readWords(args, OPTIONS), "--id"), "--id", session];
  },
  noteDelivery: () => "user",
  restart: (args, _, note) => {
    const { isUtility, prompt } = parse(args);
    return isUtility ? args : [...optionsOnly(readWords(args, OPTIONS), "--id"), withNote(note, prompt)];
  },
  sessionFiles: (place, session, reader) => {
    if (!isSessionId(session)) return [];
    const directory = sessionDirectory(place, session);
    const found = reader.list(directory).map(({ name }) => name);
    return fileNames(session)
      .filter((name) => found.includes(name))
      .map((name) => ({ path: join(directory, name), name, kind: "whole" }));
  },
  pathOf: (place, session, name) =>
    isSessionId(session) && fileNames(session).includes(name)
      ? join(sessionDirectory(place, session), name)
      : null,
  findSessions,
  transcript: {
    position: (files) => MESSAGES.position(asLines(files)),
    entries: (files) => MESSAGES.entries(asLines(files)),
  },
  patterns: PATTERNS,
  unknownSession: { exitCodes: [1], patterns: ["^error: .*session .*not found"] },
  exitZeroMeansFinished: true,
  placeholder: null,
  hooks: {
    perRun: (command, directory) =>
      forInstalledHooks(
        toolReports("cline", command, directory, {
          session: "rootSessionId",
          ended: { id: '"tool_result":{"id":"' },
        }),
      ),
    parse: parseHook,
    install: (place, command) =>
      ["TaskStart", "PreToolUse", "PostToolUse", "TaskComplete"].map((event) => {
        const { started, ended } = installedCalls(command);
        const commands: Readonly<Record<string, readonly string[]>> = {
          PreToolUse: started,
          PostToolUse: ended,
        };
        const line = [...(commands[event] ?? command), event].map(shellWord).join(" ");
        const text = `#!/bin/sh\n# Written by Lazarus: reports ${event} to it.\n${line} || true\n`;
        return ownFile(join(place.home, ".cline", "hooks", event), text, 0o700);
      }),
  },
  credentials: [".cline/data/settings/providers.json"],
};
