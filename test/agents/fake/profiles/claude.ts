// Claude Code: one JSON line per block of a message, hooks from settings and plugin directories, one process.
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../../src/platform/json-file.ts";
import { type CommandHooks, commandHooks, optionValues, positional } from "../command-line.ts";
import type { Hook, Message, Place, Profile } from "../profile.ts";

function project({ cwd, home, env }: Place): string {
  return join(
    env.CLAUDE_CONFIG_DIR ?? join(home, ".claude"),
    "projects",
    cwd.replaceAll(/[^A-Za-z0-9]/g, "-"),
  );
}

function line(place: Place, id: string, rest: JsonObject): JsonObject {
  const common = { uuid: randomUUID(), timestamp: new Date().toISOString(), cwd: place.cwd, sessionId: id };
  return { parentUuid: null, isSidechain: false, ...common, version: "2.1.325", ...rest };
}

function lines(message: Message, place: Place, id: string): JsonObject[] {
  if (message.role === "user")
    return [line(place, id, { type: "user", message: { role: "user", content: message.text } })];
  if (message.role === "tool") {
    const result = {
      tool_use_id: message.id,
      type: "tool_result",
      content: message.text,
      is_error: message.isError === true,
    };
    return [line(place, id, { type: "user", message: { role: "user", content: [result] } })];
  }
  const { text, call } = message;
  const blocks: JsonObject[] = [{ type: "text", text }];
  if (call !== undefined)
    blocks.push({ type: "tool_use", id: call.id, name: "Bash", input: { command: call.command } });
  const head = { id: `msg_${randomUUID()}`, role: "assistant", model: "claude-opus-5-5" };
  const stop_reason = call === undefined ? "end_turn" : "tool_use";
  return blocks.map((block) =>
    line(place, id, { type: "assistant", message: { ...head, content: [block], stop_reason } }),
  );
}

interface Block {
  type: string;
  text?: string;
  id?: string;
  input?: { command: string };
  tool_use_id?: string;
  content?: string;
  is_error?: boolean;
}

function read(all: readonly JsonObject[]): Message[] {
  return all.flatMap((each): Message[] => {
    const message = each.message as { content: string | Block[]; model?: string } | undefined;
    if (message === undefined || message.model === "<synthetic>") return [];
    if (typeof message.content === "string") return [{ role: "user", text: message.content }];
    return message.content.map((block): Message => {
      if (block.type === "tool_result")
        return {
          role: "tool",
          id: block.tool_use_id!,
          text: block.content!,
          isError: block.is_error === true,
        };
      if (block.type === "tool_use")
        return { role: "assistant", text: "", call: { id: block.id!, command: block.input!.command } };
      return { role: "assistant", text: block.text! };
    });
  });
}

function hooks(args: readonly string[], place: Place): Readonly<Record<string, Hook[]>> {
  const files = [
    join(place.env.CLAUDE_CONFIG_DIR ?? join(place.home, ".claude"), "settings.json"),
    ...optionValues(args, "--plugin-dir").map((directory) => join(directory, "hooks", "hooks.json")),
  ];
  const documents = files.filter((path) => existsSync(path)).map((path) => readFileSync(path, "utf8"));
  const settings = optionValues(args, "--settings").at(-1);
  if (settings !== undefined)
    documents.push(settings.startsWith("{") ? settings : readFileSync(settings, "utf8"));
  return commandHooks(documents.map((text) => JSON.parse(text) as CommandHooks));
}

const WITH_VALUE = [
  "--session-id",
  "--resume",
  "-r",
  "--plugin-dir",
  "--settings",
  "--model",
  "--output-format",
  "--permission-mode",
];
const MANY = ["--allowedTools", "--add-dir"];

export const profile: Profile = {
  name: "claude",
  wrapper: "none",
  codeOnSigterm: 143,
  parse: (args) => ({
    prompt: positional(args, WITH_VALUE, MANY).at(-1) ?? "",
    resume:
      optionValues(args, "--resume", "-r").at(-1) ?? (args.includes("--continue") ? "newest" : undefined),
    id: optionValues(args, "--session-id").at(-1),
  }),
  newFile: (place, id) => {
    const path = join(project(place), `${id}.jsonl`);
    if (!existsSync(path)) return path;
    process.stderr.write(`Error: Session ID ${id} is already in use.\n`);
    process.exit(1);
  },
  findFile: (place, id) => {
    const directory = project(place);
    const names = existsSync(directory)
      ? readdirSync(directory).filter((name) => name.endsWith(".jsonl"))
      : [];
    const paths = names.map((name) => ({ path: join(directory, name), id: name.replace(".jsonl", "") }));
    if (id !== "newest") return paths.find((each) => each.id === id);
    return paths.sort((a, b) => statSync(a.path).mtimeMs - statSync(b.path).mtimeMs).at(-1);
  },
  header: (_, id) => [
    { type: "queue-operation", operation: "enqueue", timestamp: new Date().toISOString(), sessionId: id },
  ],
  writesCallFirst: true,
  lines,
  read,
  placeholder:
    "[Tool call interrupted: the session ended before this call's result was recorded, so its outcome is unknown. Check whether it took effect before relying on it or running it again.]",
  unknownSession: (id) => ({
    text: `No conversation found with session ID: ${id}`,
    stream: "stderr",
    code: 1,
  }),
  errors: {
    429: {
      text: "API Error: Request rejected (429) · This may be a temporary capacity issue",
      stream: "stdout",
      code: 1,
    },
    529: {
      text: "API Error: 529 Overloaded. This is a server-side issue, usually temporary",
      stream: "stdout",
      code: 1,
    },
    401: { text: "Failed to authenticate. API Error: 401 Invalid bearer token", stream: "stdout", code: 1 },
    400: { text: "Prompt is too long", stream: "stdout", code: 1 },
  },
  noKey: {
    variable: "ANTHROPIC_API_KEY",
    text: "Not logged in · Please run /login",
    stream: "stdout",
    code: 1,
  },
  errorLines: ({ text }, place, id) => [
    line(place, id, {
      type: "assistant",
      isApiErrorMessage: true,
      message: {
        id: randomUUID(),
        role: "assistant",
        model: "<synthetic>",
        stop_reason: "stop_sequence",
        content: [{ type: "text", text }],
      },
    }),
  ],
  hooks,
  events: (moment, { id, path, cwd }) => {
    const common = { session_id: id, transcript_path: path, cwd };
    const event = (name: string, rest: JsonObject, tool?: string) => [
      {
        event: name,
        ...(tool !== undefined && { tool }),
        input: { ...common, hook_event_name: name, ...rest },
      },
    ];
    const tool = (call: { id: string; command: string }) => ({
      tool_name: "Bash",
      tool_input: { command: call.command },
      tool_use_id: call.id,
    });
    switch (moment.kind) {
      case "session":
        return event("SessionStart", { source: moment.resumed ? "resume" : "startup" });
      case "prompt":
        return event("UserPromptSubmit", { prompt: moment.text });
      case "before-tool":
        return event("PreToolUse", tool(moment.call), "Bash");
      case "after-tool":
        return event("PostToolUse", { ...tool(moment.call), tool_response: { stdout: moment.text } }, "Bash");
      case "done":
        return event("Stop", {
          stop_hook_active: false,
          last_assistant_message: moment.text,
          background_tasks: [],
        });
      case "failure": {
        const error =
          { 429: "rate_limit", 529: "server_error", 401: "authentication_failed" }[moment.status] ??
          "unknown";
        return event("StopFailure", { error, last_assistant_message: moment.text });
      }
      case "session-end":
        return event("SessionEnd", { reason: moment.reason });
    }
  },
};
