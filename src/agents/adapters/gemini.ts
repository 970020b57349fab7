// Gemini CLI. The id is chosen at the start. A resume appends to the session's file and also writes a second, nearly empty
// one of the same id. A tool call is in the transcript only once it has ended, so a cut-off one is known from hooks alone.
// The transcript does not say whether a response without a call was the last one. SIGTERM exits 0.
import { basename, join } from "node:path";
import type { JsonObject } from "../../platform/json-file.ts";
import type { Adapter, FailurePatterns, Place, SessionFile, SessionReader } from "../adapter.ts";
import { isUuid } from "../arguments.ts";
import {
  GEMINI_MEANINGS,
  type HookDialect,
  hookParser,
  hooksInSettings,
  hooksOf,
  settingsFileSetup,
} from "../claude-style-hooks.ts";
import { NODE_NETWORK } from "../failure-patterns.ts";
import { forInstalledHooks, toolReports } from "../tool-reports.ts";
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
import { commandLines } from "./yargs-options.ts";

const COMMAND_LINES = commandLines({
  options: {
    one: [
      ...[
        "-m",
        "--model",
        "-p",
        "--prompt",
        "-i",
        "--prompt-interactive",
        "--approval-mode",
        "--session-file",
      ],
      ...["--session-id", "--delete-session", "-o", "--output-format"],
    ],
    many: [
      ...[
        "--policy",
        "--admin-policy",
        "--allowed-mcp-server-names",
        "--allowed-tools",
        "-e",
        "--extensions",
      ],
      ...["--include-directories"],
    ],
    maybe: ["-r", "--resume", "-w", "--worktree"],
  },
  commands: ["mcp", "extensions", "extension", "skills", "skill", "hooks", "hook", "gemma"],
  elsewhere: [
    ...["--acp", "--experimental-acp", "-l", "--list-extensions", "--list-sessions", "--delete-session"],
    ...["-w", "--worktree", "-v", "--version", "-h", "--help"],
  ],
  isPositionalHeadless: false,
});

const PATTERNS: FailurePatterns = {
  quota: ['^\\s*"?(?:status|code)"?: 429\\b'],
  overload: ['^\\s*"?(?:status|code)"?: 5\\d\\d\\b', ...NODE_NETWORK],
  auth: ['^\\s*"?(?:status|code)"?: 40[13]\\b', "^please set an auth method\\b", "^when using gemini api\\b"],
  permanent: ['^\\s*"?(?:status|code)"?: 400\\b'],
};

function configDirectory({ env, home }: Place): string {
  return join(env.GEMINI_CLI_HOME || home, ".gemini");
}

const REGISTRY_BYTES = 1024 * 1024;

/** projects.json maps directories to names; for a directory that is not in it, the name that it would get. */
function chatsDirectory(place: Place, reader: SessionReader): string | null {
  const config = configDirectory(place);
  const registry = asObject(parseJson(reader.head(join(config, "projects.json"), REGISTRY_BYTES) ?? ""));
  const known = asText(asObject(registry.projects)[place.cwd]);
  const name = known || slug(basename(place.cwd));
  return /^[a-z0-9-]+$/.test(name) ? join(config, "tmp", name, "chats") : null;
}

function slug(text: string): string {
  const name = text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-|-$/g, "");
  return name || "project";
}

/** The name has only the first eight characters of the id. */
const FILE_NAME = /^session-[0-9T-]+-([0-9a-f]{8})\.jsonl$/;
const HEAD_BYTES = 4096;

function sessionIn(path: string, reader: SessionReader): string | null {
  const id = /"sessionId":"([^"]+)"/.exec(reader.head(path, HEAD_BYTES) ?? "")?.[1];
  return id !== undefined && isUuid(id) ? id : null;
}

function sessionFiles(place: Place, session: string, reader: SessionReader): SessionFile[] {
  const chats = chatsDirectory(place, reader);
  if (chats === null || !isUuid(session)) return [];
  return reader
    .list(chats)
    .map(({ name }) => ({ name, path: join(chats, name) }))
    .filter(({ name }) => FILE_NAME.exec(name)?.[1] === session.slice(0, 8).toLowerCase())
    .filter(({ path }) => sessionIn(path, reader) === session)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((file) => ({ ...file, kind: "lines" }));
}

function findSessions(place: Place, sinceMs: number, reader: SessionReader): string[] {
  const chats = chatsDirectory(place, reader);
  if (chats === null) return [];
  const found = reader.list(chats).flatMap(({ name }) => {
    const path = join(chats, name);
    const atMs = FILE_NAME.test(name) ? reader.createdMs(path) : undefined;
    const id = atMs === undefined || atMs < sinceMs ? null : sessionIn(path, reader);
    return id === null ? [] : [{ id, atMs: atMs! }];
  });
  return [...new Set(found.sort((a, b) => a.atMs - b.atMs).map(({ id }) => id))];
}

function stepsOf(line: JsonObject): Step[] {
  const set = asObject(line.$set);
  if (Array.isArray(set.messages))
    return [{ kind: "reset", atMs: null }, ...set.messages.flatMap(messageSteps)];
  return messageSteps(line);
}

function messageSteps(value: unknown): Step[] {
  const message = asObject(value);
  const atMs = timeMs(message.timestamp);
  if (message.type === "user") return userSteps(message.content, atMs);
  if (message.type === "error") return [{ kind: "system", text: textOf(message.content), atMs }];
  if (message.type !== "gemini") return [];
  const calls = asArray(message.toolCalls).map(asObject);
  const id = asText(message.id) || null;
  const text = textOf(message.content);
  return [
    { kind: "response", id, text, ends: calls.length === 0, atMs },
    ...calls.flatMap((call): Step[] => {
      const made = toolCall(asText(call.id), asText(call.name), call.args);
      const result =
        call.status === undefined
          ? []
          : [{ kind: "result", id: made.id, text: asText(call.resultDisplay), atMs } as const];
      return [{ kind: "call", call: made, atMs }, ...result];
    }),
  ];
}

/** Results are repeated as a message of the user's; the first message describes the directory. */
function userSteps(content: unknown, atMs: number | null): Step[] {
  const isResult = asArray(content).some((part) => asObject(part).functionResponse !== undefined);
  const text = textOf(content);
  return isResult || text.startsWith("<session_context>") ? [] : [{ kind: "prompt", text, atMs }];
}

const SYSTEM_SETTINGS = "GEMINI_CLI_SYSTEM_DEFAULTS_PATH";
const DIALECT: HookDialect = {
  timeout: 10_000,
  extra: { name: "lazarus" },
  events: {
    SessionStart: {},
    BeforeAgent: {},
    BeforeTool: { matcher: "*" },
    AfterTool: { matcher: "*" },
    AfterAgent: {},
    SessionEnd: {},
  },
};

export const gemini: Adapter = {
  name: "gemini",
  testedVersion: "0.61.0",
  programs: ["gemini"],
  packages: ["@google/gemini-cli"],
  ...COMMAND_LINES,
  sessionIds: "chosen",
  isSessionId: isUuid,
  // Without it, the recorded process is a wrapper that ignores SIGTERM.
  env: () => ({ GEMINI_CLI_NO_RELAUNCH: "true" }),
  sessionFiles,
  pathOf: (place, session, name, reader) => {
    const chats = isUuid(session) ? chatsDirectory(place, reader) : null;
    return chats !== null && FILE_NAME.exec(name)?.[1] === session.slice(0, 8).toLowerCase()
      ? join(chats, name)
      : null;
  },
  findSessions,
  transcript: jsonLinesReader(stepsOf),
  patterns: PATTERNS,
  unknownSession: {
    exitCodes: [42],
    patterns: ["^error resuming session: (?:invalid session identifier|no previous sessions found)\\b"],
  },
  exitZeroMeansFinished: false,
  placeholder: null,
  hooks: {
    // System-wide settings, which the user's own override. Gemini skips the file, with a warning, unless only root
    // can write to it and to every directory above: other users run `lazarus install gemini`.
    perRun: (command, directory, env) => {
      const calls = toolReports("gemini", command, directory, {
        session: "session_id",
        ended: { output: "tool_response" },
      });
      if (!directory.startsWith("/root/") || env[SYSTEM_SETTINGS]) return forInstalledHooks(calls);
      const hooks = hooksOf(command, DIALECT, calls);
      const setup = settingsFileSetup("gemini", SYSTEM_SETTINGS, directory, hooks);
      return { ...setup, files: [calls.file, ...setup.files] };
    },
    parse: hookParser(GEMINI_MEANINGS, PATTERNS),
    install: (place, command) => [
      hooksInSettings(join(configDirectory(place), "settings.json"), "gemini", command, DIALECT),
    ],
  },
  credentials: [".gemini/oauth_creds.json", ".gemini/google_accounts.json", ".gemini/.env"],
};
