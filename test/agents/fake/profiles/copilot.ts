// GitHub Copilot CLI: chosen ids, a directory per session, hooks from a plugin directory, without ids of calls.
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { JsonObject } from "../../../../src/platform/json-file.ts";
import { optionValues } from "../command-line.ts";
import type { Call, Hook, Message, Place, Profile } from "../profile.ts";

const file = ({ home, env }: Place, id: string) =>
  join(env.COPILOT_HOME ?? join(home, ".copilot"), "session-state", id, "events.jsonl");
const line = (type: string, data: JsonObject): JsonObject => ({
  type,
  data,
  id: randomUUID(),
  timestamp: new Date().toISOString(),
});
const error = (text: string) => ({ text, stream: "stderr" as const, code: 1 });
const failed = (why: string) =>
  error(`Failed to get response from the AI model; retried 5 times. Last error: ${why}`);

function lines(message: Message): JsonObject[] {
  if (message.role === "user") return [line("user.message", { content: message.text })];
  if (message.role === "tool") {
    const { id: toolCallId, text, isError } = message;
    const outcome = isError
      ? { success: false, error: { message: text, code: "interrupted" } }
      : { success: true, result: { content: text } };
    return [line("tool.execution_complete", { toolCallId, ...outcome }), line("assistant.turn_end", {})];
  }
  const { text: content, call } = message;
  const toolRequests = call ? [request(call)] : [];
  const spoken = line("assistant.message", { messageId: randomUUID(), content, toolRequests });
  if (call === undefined) return [line("assistant.turn_start", {}), spoken, line("assistant.turn_end", {})];
  const { toolCallId, name: toolName, arguments: args } = request(call);
  return [
    line("assistant.turn_start", {}),
    spoken,
    line("tool.execution_start", { toolCallId, toolName, arguments: args }),
  ];
}

const request = ({ id, command }: Call) => ({
  toolCallId: id,
  name: "bash",
  arguments: { command, description: "Write a chapter" },
});

interface Data {
  readonly content: string;
  readonly toolCallId: string;
  readonly toolRequests: readonly ReturnType<typeof request>[];
  readonly result?: { readonly content: string };
}

function read(all: readonly JsonObject[]): Message[] {
  return all.flatMap(({ type, data }): Message[] => {
    const { content: text, toolCallId, toolRequests, result } = data as unknown as Data;
    switch (type) {
      case "user.message":
        return [{ role: "user", text }];
      case "tool.execution_complete":
        return [{ role: "tool", id: toolCallId, text: result?.content ?? "", isError: !result }];
      case "assistant.message": {
        const [made] = toolRequests;
        const call = made && { id: made.toolCallId, command: made.arguments.command };
        return [{ role: "assistant", text, ...(call && { call }) }];
      }
      default:
        return [];
    }
  });
}

interface HooksFile {
  readonly hooks: Readonly<Record<string, readonly { readonly bash: string }[]>>;
}

function hooks(args: readonly string[]): Record<string, Hook[]> {
  const found: Record<string, Hook[]> = {};
  for (const directory of optionValues(args, "--plugin-dir")) {
    const plugin = JSON.parse(readFileSync(join(directory, "plugin.json"), "utf8")) as { hooks: string };
    const { hooks: events } = JSON.parse(readFileSync(join(directory, plugin.hooks), "utf8")) as HooksFile;
    for (const [event, commands] of Object.entries(events))
      found[event] = [...(found[event] ?? []), ...commands.map(({ bash }) => ({ command: bash }))];
  }
  return found;
}

export const profile: Profile = {
  name: "copilot",
  wrapper: "none",
  codeOnSigterm: 143,
  parse: (args) => ({
    prompt: optionValues(args, "-p", "--prompt").at(-1) ?? "",
    resume: optionValues(args, "--resume").at(-1),
    id: optionValues(args, "--session-id").at(-1),
    continues: true,
  }),
  newFile: file,
  findFile: (place, id) => (existsSync(file(place, id)) ? { path: file(place, id), id } : undefined),
  header: (place, id, resumed) => {
    const directory = dirname(file(place, id));
    mkdirSync(directory, { recursive: true });
    // A killed one leaves its lock file behind.
    writeFileSync(join(directory, `inuse.${process.pid}.lock`), "");
    writeFileSync(join(directory, "workspace.yaml"), `id: ${id}\ncwd: ${place.cwd}\n`);
    return [line(resumed ? "session.resume" : "session.start", { sessionId: id })];
  },
  writesCallFirst: true,
  lines,
  read,
  placeholder: "The tool was interrupted when the session ended.",
  unknownSession: (id) => error(`Error: No session, task, or name matched '${id}'.`),
  errors: { 429: failed("429 slow down"), 529: failed("529 Overloaded"), 401: failed("401 Unauthorized") },
  noKey: {
    variable: "COPILOT_PROVIDER_API_KEY",
    ...error("Error: No authentication information found."),
  },
  errorLines: ({ text }) => [line("session.error", { message: text })],
  hooks,
  events: (moment, { id, path, cwd }) => {
    const event = (name: string, rest: JsonObject) => [
      { event: name, input: { sessionId: id, timestamp: Date.now(), cwd, ...rest } },
    ];
    const tool = ({ command }: Call) => ({ toolName: "bash", toolArgs: { command } });
    switch (moment.kind) {
      case "session":
        return event("sessionStart", { source: moment.resumed ? "resume" : "new" });
      case "prompt":
        return event("userPromptSubmitted", { prompt: moment.text });
      case "before-tool":
        return event("preToolUse", tool(moment.call));
      case "after-tool":
        return event("postToolUse", { ...tool(moment.call), toolResult: { resultType: "success" } });
      case "done":
        return event("agentStop", { transcriptPath: path, stopReason: "end_turn" });
      case "session-end":
        return event("sessionEnd", { reason: "complete" });
      case "failure":
        return [];
    }
  },
};
