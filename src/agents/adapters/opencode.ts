// OpenCode. All of its sessions are in one database, so a mission gets its own database, in the state of its cell: then
// it is captured and restored with the files. Keys are in auth.json and stay where they are. A plugin reports the session. The
// terminal interface ignores a prompt when it opens a session, so there the plugin sends the note of a revival.
import { basename, dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { isJsonObject, type JsonObject } from "../../platform/json-file.ts";
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
import { NETWORK } from "../failure-patterns.ts";
import { ownFile } from "../own-file.ts";
import { parseReported, reporterSource } from "../reporting-plugin.ts";
import { resumeNoteFile, unsentNoteFile } from "../session.ts";
import { asObject, asText, jsonLinesReader, parseJson, type Step, timeMs, toolCall } from "../transcript.ts";

const OPTIONS: Grammar = {
  one: [
    ...["--log-level", "--command", "-s", "--session", "-m", "--model", "--agent", "--format", "--title"],
    ...["--attach", "-p", "--password", "-u", "--username", "--dir", "--port", "--variant", "--prompt"],
    ...["--hostname", "--mdns-domain", "--replay-limit"],
  ],
  many: ["-f", "--file", "--cors"],
};
const COMMANDS = [
  ...["completion", "acp", "mcp", "attach", "debug", "providers", "auth", "agent", "upgrade", "uninstall"],
  ...[
    "serve",
    "web",
    "models",
    "stats",
    "export",
    "import",
    "github",
    "pr",
    "session",
    "plugin",
    "plug",
    "db",
  ],
];
/** With these, the conversation belongs to another process. */
const ELSEWHERE = ["-h", "--help", "-v", "--version", "--attach"];
const SESSION_OPTIONS = ["-s", "--session", "-c", "--continue", "--fork"];
const DATABASE = "opencode.db";

function isSessionId(text: string): boolean {
  return /^ses_[A-Za-z0-9]{8,64}$/.test(text);
}

function parse(args: readonly string[]): Invocation {
  const words = readWords(args, OPTIONS);
  const [first, ...rest] = positionals(words);
  const isRun = first === "run";
  const prompt = isRun ? rest.join(" ") : optionValue(words, "--prompt");
  return {
    isHeadless: isRun && !hasOption(words, "-i", "--interactive"),
    prompt: prompt === undefined || prompt === "" ? null : prompt,
    session: chosenSession(words),
    isUtility: hasOption(words, ...ELSEWHERE) || (first !== undefined && COMMANDS.includes(first)),
  };
}

function chosenSession(words: readonly Word[]): Invocation["session"] {
  if (hasOption(words, "--fork")) return null;
  const id = optionValue(words, "-s", "--session");
  if (id !== undefined && isSessionId(id)) return { id };
  return hasOption(words, "-c", "--continue") ? "newest" : null;
}

/** False for `opencode run`, which takes the prompt as words. The terminal interface takes it as an option. */
function isInterface(args: readonly string[]): boolean {
  return positionals(readWords(args, OPTIONS))[0] !== "run";
}

function withPrompt(
  args: readonly string[],
  session: readonly string[],
  prompt: string | null,
): readonly string[] {
  const words = readWords(args, OPTIONS);
  const options = optionsOnly(words, ...SESSION_OPTIONS, "--command", "--prompt");
  const [first, ...rest] = positionals(words);
  // An option with one value goes before the prompt, which a list of files would otherwise include.
  if (first === "run") return ["run", ...options, ...session, "--", prompt ?? ""];
  const asked = prompt === null ? [] : ["--prompt", prompt];
  return [...options, ...session, ...asked, ...(first === undefined ? [] : [first, ...rest])];
}

/** The mission's own database; undefined when the agent runs with the user's. */
function databaseOf({ env }: Place): string | undefined {
  const path = env.OPENCODE_DB;
  return path?.startsWith("/") && basename(path) === DATABASE ? path : undefined;
}

/** One row per part; a message without parts has one row. */
const QUERY = `SELECT json_object('id', m.id, 'at', m.time_created, 'message', json(m.data), 'part', json(p.data)) AS line
  FROM message m LEFT JOIN part p ON p.message_id = m.id
  WHERE m.session_id = ? ORDER BY m.time_created, m.id, p.id`;

function steps({ line }: JsonObject): readonly Step[] {
  const row = asObject(typeof line === "string" ? parseJson(line) : line);
  const message = asObject(row.message);
  const part = asObject(row.part);
  const atMs = timeMs(row.at);
  if (message.role === "user")
    return part.type === "text" ? [{ kind: "prompt", text: asText(part.text), atMs }] : [];
  if (isJsonObject(message.error)) {
    const text = asText(asObject(message.error.data).message) || asText(message.error.name);
    return [{ kind: "system", text, atMs }];
  }
  const ends = message.finish === "stop" && part.type !== "tool";
  const text = part.type === "text" ? asText(part.text) : "";
  const response: Step = { kind: "response", id: asText(row.id) || null, text, ends, atMs };
  return part.type === "tool" ? [response, ...toolSteps(part, atMs)] : [response];
}

function toolSteps(part: JsonObject, atMs: number | null): Step[] {
  const state = asObject(part.state);
  const id = asText(part.callID) || null;
  const call: Step = { kind: "call", call: toolCall(id, asText(part.tool), state.input), atMs };
  if (state.status !== "completed" && state.status !== "error") return [call];
  return [call, { kind: "result", id, text: asText(state.output) || asText(state.error), atMs }];
}

/** Errors in the output start with "Error:", those that the plugin reports with the status or the message. */
const PATTERNS: FailurePatterns = {
  quota: [
    "^(?:error: )?(?:429\\b|rate limit reached|too many requests|quota exceeded)",
    "^error: .*rate limit",
  ],
  overload: [
    "^(?:error: )?(?:5\\d\\d\\b|overloaded|service unavailable|internal server error|bad gateway|gateway timeout)",
    `^(?:error: .*)?${NETWORK}`,
  ],
  auth: [
    "^(?:error: )?(?:40[13]\\b|unauthorized|invalid (?:x-)?api[ -]key|incorrect api key)",
    "^error: .*api key is missing",
  ],
  permanent: ["^(?:error: )?(?:400 )?prompt is too long", "^(?:error: )?400 .*(?:context|too long|maximum)"],
};

function plugin(command: readonly string[], directory: string | null, resumed?: string): string {
  const note = directory === null ? null : resumeNoteFile(dirname(directory));
  const unsent = directory === null ? null : unsentNoteFile(dirname(directory));
  return `${reporterSource(command, directory)}
import { readFileSync, renameSync } from "node:fs";
const NOTE = ${JSON.stringify(note)};
const RESUMED = ${JSON.stringify(resumed ?? null)};
// The note of a revival, if no prompt contains it. Renamed first, so that it is sent once. A prompt without an agent would go to
// the default one, which may write where the user's (plan) may not. A note that cannot be sent is kept: the user has to continue.
async function sendNote(session) {
  try {
    renameSync(NOTE, NOTE + ".delivered");
  } catch {
    return;
  }
  try {
    const text = readFileSync(NOTE + ".delivered", "utf8");
    const path = { id: RESUMED };
    const { data } = await session.messages({ path });
    const { agent, model } = data.findLast(({ info }) => info.role === "user").info;
    const { error } = await session.promptAsync({ path, body: { agent, model, parts: [{ type: "text", text }] } });
    if (error) throw error;
  } catch {
    try {
      renameSync(NOTE + ".delivered", ${JSON.stringify(unsent)});
    } catch {}
  }
}
let root;
// OpenCode is also idle after a failed turn. A turn that it continues with a shorter conversation has not failed.
let failed = false;
const children = new Set();
const QUIET = ["read", "grep", "glob", "list", "todoread", "todowrite"];
const call = (tool, id, args) => ({
  id, tool, command: args?.command, summary: args?.filePath ?? args?.command ?? JSON.stringify(args ?? {}),
});
function enter(sessionID) {
  if (sessionID === undefined || sessionID === root || children.has(sessionID)) return;
  root = sessionID;
  report({ kind: "session", session: root });
}
export const Lazarus = async ({ client }) => {
  // OpenCode answers requests only once its plugins are loaded.
  if (NOTE !== null && RESUMED !== null) setTimeout(() => sendNote(client.session), 0);
  return HOOKS;
};
const HOOKS = {
  event: async ({ event: { type, properties } }) => {
    if (type === "session.created") {
      if (properties.info?.parentID) children.add(properties.info.id);
      else enter(properties.info?.id);
    } else if (type === "session.idle" && properties.sessionID === root) {
      if (!failed) report({ kind: "turn-end" });
    } else if (type === "message.updated") {
      const { role, sessionID, error, time } = properties.info ?? {};
      if (sessionID === root && role === "assistant" && time?.completed && !error) failed = false;
    } else if (type === "session.error" && (properties.sessionID ?? root) === root) {
      const { name, data } = properties.error ?? {};
      if (name === "MessageAbortedError") return;
      failed = true;
      const after = data?.responseHeaders?.["retry-after"];
      const parts = [data?.statusCode, data?.message ?? name, after && \`(retry-after: \${after})\`];
      report({ kind: "failure", message: parts.filter(Boolean).join(" ") });
    }
  },
  "chat.message": async ({ sessionID }) => {
    enter(sessionID);
    if (sessionID !== root) return;
    failed = false;
    report({ kind: "prompt" });
  },
  "tool.execute.before": async ({ tool, callID }, { args }) => {
    if (!QUIET.includes(tool)) report({ kind: "tool-start", call: call(tool, callID, args) });
  },
  "tool.execute.after": async ({ tool, callID, args }) => {
    if (!QUIET.includes(tool)) ended(call(tool, callID, args));
  },
  "experimental.session.compacting": async () => report({ kind: "compaction" }),
  dispose: async () => report({ kind: "session-end", reason: "dispose" }),
};
`;
}

/** The user's own inline config, with our plugin added. */
function configContent(text: string | undefined, file: string): string {
  const config = asObject(text === undefined ? undefined : parseJson(text));
  const plugins = Array.isArray(config.plugin) ? config.plugin : [];
  return JSON.stringify({ ...config, plugin: [...plugins, pathToFileURL(file).href] });
}

export const opencode: Adapter = {
  name: "opencode",
  testedVersion: "1.18.33",
  programs: ["opencode"],
  packages: ["opencode-ai"],
  parse,
  sessionIds: "found",
  isSessionId,
  start: (args) => args,
  resume: (args, session, note) =>
    parse(args).isUtility || !isSessionId(session)
      ? null
      : withPrompt(args, ["--session", session], isInterface(args) ? null : asPrompt(note)),
  noteDelivery: (args) => {
    if (!isInterface(args)) return null;
    return hasOption(readWords(args, OPTIONS), "--pure") ? "user" : "hook";
  },
  restart: (args, _, note) => {
    const { isUtility, prompt } = parse(args);
    return isUtility ? args : withPrompt(args, [], withNote(note, prompt));
  },
  env: (_, directory) => ({ OPENCODE_DB: join(directory, DATABASE) }),
  seed: ({ env, home }, directory) => {
    const data = env.XDG_DATA_HOME || join(home, ".local", "share");
    return {
      from: env.OPENCODE_DB?.startsWith("/") ? env.OPENCODE_DB : join(data, "opencode", DATABASE),
      to: join(directory, DATABASE),
      secrets: ["account", "account_state", "control_account", "credential", "session_share"],
    };
  },
  sessionFiles: (place, session, reader) => {
    const path = databaseOf(place);
    if (path === undefined || !isSessionId(session)) return [];
    const exists = reader.list(dirname(path)).some(({ name }) => name === DATABASE);
    return exists ? [{ path, name: DATABASE, kind: "sqlite" }] : [];
  },
  pathOf: (place, session, name) =>
    name === DATABASE && isSessionId(session) ? (databaseOf(place) ?? null) : null,
  findSessions: () => [],
  sessionInOutput: (line) => /^\{.*"sessionID":"(ses_[A-Za-z0-9]+)"/.exec(line)?.[1] ?? null,
  transcript: { ...jsonLinesReader(steps), query: QUERY },
  patterns: PATTERNS,
  unknownSession: { exitCodes: [1], patterns: ["^error: session not found"] },
  exitZeroMeansFinished: true,
  placeholder: "[Tool execution was interrupted]",
  hooks: {
    perRun: (command, directory, env, resumed) => {
      const file = join(directory, "opencode.js");
      return {
        args: [],
        env: { OPENCODE_CONFIG_CONTENT: configContent(env.OPENCODE_CONFIG_CONTENT, file) },
        files: [{ name: "opencode.js", text: plugin(command, directory, resumed) }],
      };
    },
    parse: parseReported(PATTERNS),
    install: (place, command) => {
      const config = place.env.XDG_CONFIG_HOME || join(place.home, ".config");
      return [ownFile(join(config, "opencode", "plugin", "lazarus.js"), plugin(command, null))];
    },
  },
  mcp: (command, { OPENCODE_CONFIG_CONTENT: text }) => {
    const config = asObject(text === undefined ? undefined : parseJson(text));
    const mcp = { ...asObject(config.mcp), lazarus: { type: "local", command } };
    return { args: [], env: { OPENCODE_CONFIG_CONTENT: JSON.stringify({ ...config, mcp }) } };
  },
  credentials: [".local/share/opencode/auth.json", ".local/share/opencode/mcp-auth.json"],
};
