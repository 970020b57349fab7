// OpenCode: its own ids, all sessions in one database, a plugin in its own process, and a result made up for a cut-off call.
import { randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../../src/platform/json-file.ts";
import { optionValues, positional } from "../command-line.ts";
import { keptOpen } from "../database.ts";
import type { Hook, Message, Place, Profile, Store } from "../profile.ts";

const file = ({ home, env }: Place) =>
  env.OPENCODE_DB ?? join(home, ".local", "share", "opencode", "opencode.db");
const error = (text: string) => ({ text, stream: "stderr" as const, code: 1 });

const database = keptOpen(`CREATE TABLE IF NOT EXISTS session (id TEXT PRIMARY KEY, directory TEXT);
  CREATE TABLE IF NOT EXISTS message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER, data TEXT);
  CREATE TABLE IF NOT EXISTS part (id TEXT PRIMARY KEY, message_id TEXT, session_id TEXT, data TEXT)`);

const SET_RESULT = `UPDATE part SET data = json_set(data, '$.state.status', ?, '$.state.output', ?)
  WHERE json_extract(data, '$.callID') = ?`;

let written = 0;
const newId = (prefix: string) => `${prefix}_${Date.now().toString(16)}${String(written++).padStart(6, "0")}`;

/** A line is a session, a message with its parts, or the result of a call, whose part changes. */
const STORE: Store = {
  append: (path, id, lines) => {
    const run = (sql: string, ...values: string[]) =>
      void database(path)
        .prepare(sql)
        .run(...values);
    for (const { directory, message, parts, callID, status, output } of lines) {
      if (directory !== undefined) run("INSERT INTO session VALUES (?, ?)", id, String(directory));
      if (callID !== undefined) run(SET_RESULT, String(status), String(output), String(callID));
      if (message === undefined) continue;
      const messageId = newId("msg");
      const insert = "INSERT INTO message VALUES (?, ?, unixepoch('subsec') * 1000, ?)";
      run(insert, messageId, id, JSON.stringify(message));
      for (const part of parts as JsonObject[])
        run("INSERT INTO part VALUES (?, ?, ?, ?)", newId("prt"), messageId, id, JSON.stringify(part));
    }
  },
  read: (path, id) =>
    database(path)
      .prepare(`SELECT json_object('message', json(m.data), 'part', json(p.data)) AS line
        FROM message m JOIN part p ON p.message_id = m.id WHERE m.session_id = ? ORDER BY m.time_created, m.id, p.id`)
      .all(id)
      .map(({ line }) => JSON.parse(String(line)) as JsonObject),
};

function lines(message: Message): JsonObject[] {
  if (message.role === "tool") return [{ callID: message.id, status: "completed", output: message.text }];
  const text = { type: "text", text: message.text };
  if (message.role === "user") return [{ message: { role: "user" }, parts: [text] }];
  const { call } = message;
  if (call === undefined)
    return [{ message: { role: "assistant", finish: "stop" }, parts: [{ type: "step-start" }, text] }];
  const state = { status: "running", input: { command: call.command } };
  const tool = { type: "tool", tool: "bash", callID: call.id, state };
  return [{ message: { role: "assistant" }, parts: [{ type: "step-start" }, text, tool] }];
}

interface Part {
  readonly type: string;
  readonly text: string;
  readonly callID: string;
  readonly state: { readonly status: string; readonly input: { command: string }; readonly output: string };
}

function read(all: readonly JsonObject[]): Message[] {
  return all.flatMap(({ message, part }): Message[] => {
    const { role } = message as { role: "user" | "assistant" };
    const { type, text, callID: id, state } = part as unknown as Part;
    if (type === "text") return [{ role, text }];
    if (type !== "tool") return [];
    const call: Message = { role: "assistant", text: "", call: { id, command: state.input.command } };
    return state.status === "completed" ? [call, { role: "tool", id, text: state.output }] : [call];
  });
}

type Plugin = (context: object) => Promise<Record<string, (input: unknown, output: unknown) => unknown>>;

interface Prompt {
  readonly body: { readonly parts: readonly { readonly text: string }[] };
}

/** A prompt that the plugin sends to the session. */
const sent = Promise.withResolvers<string>();
const session = {
  messages: async () => ({ data: [{ info: { role: "user", agent: "build" } }] }),
  promptAsync: async ({ body }: Prompt) => sent.resolve(body.parts[0]!.text),
};

async function hooks(_: readonly string[], { env }: Place): Promise<Record<string, Hook[]>> {
  const { plugin = [] } = JSON.parse(env.OPENCODE_CONFIG_CONTENT ?? "{}") as { plugin?: string[] };
  const found: Record<string, Hook[]> = {};
  for (const url of plugin)
    for (const create of Object.values((await import(url)) as Record<string, Plugin>))
      for (const [name, hook] of Object.entries(await create({ client: { session } })))
        found[name] = [...(found[name] ?? []), { run: ({ input, output }) => void hook(input, output) }];
  return found;
}

export const profile: Profile = {
  name: "opencode",
  wrapper: "none",
  codeOnSigterm: 143,
  newId: () => `ses_${randomUUID().replaceAll("-", "").slice(0, 26)}`,
  // The terminal interface ignores --prompt when it opens a session.
  parse: (args) => {
    const resume = optionValues(args, "--session").at(-1);
    const isInterface = args[0] !== "run";
    if (isInterface && resume !== undefined) return { prompt: sent.promise, resume };
    const prompt = isInterface ? optionValues(args, "--prompt") : positional(args, ["--session"]);
    return { prompt: prompt.at(-1) ?? "", resume };
  },
  newFile: file,
  findFile: (place, id) => {
    const path = file(place);
    return existsSync(path) && STORE.read(path, id).length > 0 ? { path, id } : undefined;
  },
  header: ({ cwd }, _, resumed) => (resumed ? [] : [{ directory: cwd }]),
  store: STORE,
  writesCallFirst: true,
  lines,
  read,
  placeholder: "[Tool execution was interrupted]",
  inventsPlaceholder: true,
  unknownSession: () => error("Error: Session not found"),
  errors: {
    429: error("Error: Rate limit reached for requests"),
    529: error("Error: Overloaded"),
    401: error("Error: Unauthorized"),
  },
  noKey: { variable: "ANTHROPIC_API_KEY", ...error("Error: Anthropic API key is missing.") },
  errorLines: ({ text: message }) => [
    { message: { role: "assistant", error: { name: "APIError", data: { message } } }, parts: [] },
  ],
  hooks,
  events: (moment, { id: sessionID }) => {
    const event = (name: string, input: object, output: object = {}) => [
      { event: name, input: { input, output } },
    ];
    const bus = (type: string, rest: object) =>
      event("event", { event: { type, properties: { sessionID, ...rest } } });
    switch (moment.kind) {
      case "session":
        return moment.resumed ? [] : bus("session.created", { info: { id: sessionID } });
      case "prompt":
        return event("chat.message", { sessionID });
      case "before-tool":
      case "after-tool": {
        const { id: callID, command } = moment.call;
        const call = { tool: "bash", sessionID, callID };
        if (moment.kind === "before-tool") return event("tool.execute.before", call, { args: { command } });
        return event("tool.execute.after", { ...call, args: { command } }, { output: moment.text });
      }
      case "done":
        return bus("session.idle", {});
      case "failure":
        return [
          ...bus("session.error", { error: { name: "APIError", data: { message: moment.text } } }),
          ...bus("session.idle", {}),
        ];
      case "session-end":
        return event("dispose", {});
    }
  },
};
