// Cline: its own ids, one document per session, hooks as executables; it resumes only with a terminal.
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { JsonObject } from "../../../../src/platform/json-file.ts";
import { optionValues, positional } from "../command-line.ts";
import type { Call, Hook, Message, Place, Profile, Store } from "../profile.ts";

const EVENTS = ["TaskStart", "PreToolUse", "PostToolUse", "TaskComplete"];
const data = ({ home, env }: Place) => env.CLINE_DATA_DIR ?? join(home, ".cline", "data");
const error = (text: string) => ({ text, stream: "stderr" as const, code: 1 });

interface Document {
  readonly messages: readonly JsonObject[];
}

const STORE: Store = {
  append: (path, id, lines) => {
    const before = existsSync(path) ? STORE.read(path, id) : [];
    const description = join(dirname(path), `${id}.json`);
    if (before.length === 0) writeFileSync(description, JSON.stringify({ cwd: process.cwd() }, null, 2));
    writeFileSync(`${path}.tmp`, JSON.stringify({ version: 1, messages: [...before, ...lines] }));
    renameSync(`${path}.tmp`, path);
  },
  read: (path) => (JSON.parse(readFileSync(path, "utf8")) as Document).messages,
};

let written = 0;
function lines(message: Message): JsonObject[] {
  const said = (role: string, content: JsonObject[]) => [
    { id: `msg_${Date.now()}_${written++}`, role, content, ts: Date.now() },
  ];
  if (message.role === "tool") {
    const content = [{ query: "sh", result: message.text, success: true }];
    return said("user", [{ type: "tool_result", tool_use_id: message.id, content }]);
  }
  const text = { type: "text", text: message.text };
  if (message.role === "user" || message.call === undefined) return said(message.role, [text]);
  const { id, command } = message.call;
  return said("assistant", [
    text,
    { type: "tool_use", id, name: "run_commands", input: { commands: [command] } },
  ]);
}

const called = (key: "tool_call" | "tool_result", { id, command }: Call) => ({
  hookName: key,
  [key]: { id, name: "run_commands", input: { commands: [command] } },
});

function waitForever(): Promise<string> {
  setInterval(() => {}, 60_000);
  return new Promise(() => {});
}

export const profile: Profile = {
  name: "cline",
  cannotResume: "its command line cannot be resumed",
  wrapper: "none",
  codeOnSigterm: 143,
  newId: () => `${Date.now()}_${Math.random().toString(36).slice(2, 7).padEnd(5, "0")}`,
  // With -i, a session that is opened by its id waits for its user.
  parse: (args) => {
    const resume = optionValues(args, "--id").at(-1);
    const prompt = args.includes("-i") && resume !== undefined ? waitForever() : undefined;
    return { prompt: prompt ?? positional(args, ["--id", "-m"]).at(-1) ?? "", resume };
  },
  newFile: (place, id) => join(data(place), "sessions", id, `${id}.messages.json`),
  findFile: (place, id) => {
    const path = join(data(place), "sessions", id, `${id}.messages.json`);
    return process.argv.includes("-i") && existsSync(path) ? { path, id } : undefined;
  },
  header: () => [],
  store: STORE,
  writesCallFirst: true,
  lines,
  read: () => [],
  placeholder: null,
  unknownSession: (id) => error(`error: the session ${id} needs a terminal`),
  errors: {
    429: error("error: Rate limit reached. Please try again later."),
    529: error("error: Overloaded"),
    401: error("error: Unauthorized"),
  },
  noKey: { variable: "ANTHROPIC_API_KEY", ...error("error: Unauthorized") },
  hooks: (_, { home }) => {
    const path = (event: string) => join(home, ".cline", "hooks", event);
    return Object.fromEntries(
      EVENTS.filter((event) => existsSync(path(event))).map((event): [string, Hook[]] => [
        event,
        [{ command: `'${path(event)}'` }],
      ]),
    );
  },
  events: (moment, { id, cwd }) => {
    const common = { taskId: id, sessionContext: { rootSessionId: id }, workspaceRoots: [cwd] };
    const event = (name: string, rest: JsonObject) => [{ event: name, input: { ...common, ...rest } }];
    switch (moment.kind) {
      case "session":
        return event("TaskStart", {});
      case "before-tool":
        return event("PreToolUse", called("tool_call", moment.call));
      case "after-tool":
        return event("PostToolUse", called("tool_result", moment.call));
      case "done":
        return event("TaskComplete", { hookName: "agent_end" });
      default:
        return [];
    }
  },
};
