// Qwen Code: chosen ids, a wrapper process, Claude's names for hooks, and a wrong text for a cut-off call.
import { randomUUID } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../../src/platform/json-file.ts";
import { type CommandHooks, commandHooks, optionValues } from "../command-line.ts";
import { hookEvents } from "../events.ts";
import type { Message, Place, Profile } from "../profile.ts";

const file = ({ cwd, home }: Place, id: string) =>
  join(home, ".qwen", "projects", cwd.replaceAll(/[^A-Za-z0-9]/g, "-"), "chats", `${id}.jsonl`);

function lines(message: Message, { cwd }: Place, sessionId: string): JsonObject[] {
  const line = (type: string, role: string, parts: JsonObject[]) => [
    {
      uuid: randomUUID(),
      sessionId,
      timestamp: new Date().toISOString(),
      type,
      cwd,
      message: { role, parts },
    },
  ];
  if (message.role === "user") return line("user", "user", [{ text: message.text }]);
  if (message.role === "tool") {
    const response = message.isError ? { error: message.text } : { output: message.text };
    return line("tool_result", "user", [
      { functionResponse: { id: message.id, name: "run_shell_command", response } },
    ]);
  }
  const { text, call } = message;
  const made = call && {
    functionCall: { id: call.id, name: "run_shell_command", args: { command: call.command } },
  };
  return line("assistant", "model", [{ text }, ...(made ? [made] : [])]);
}

interface Part {
  text?: string;
  functionCall?: { id: string; args: { command: string } };
  functionResponse?: { id: string; response: { output?: string; error?: string } };
}

function read(all: readonly JsonObject[]): Message[] {
  return all.flatMap((line) => {
    const { parts } = line.message as { parts: Part[] };
    return parts.map(({ text = "", functionCall: call, functionResponse: result }): Message => {
      if (result)
        return {
          role: "tool",
          id: result.id,
          text: result.response.output ?? "",
          isError: result.response.error !== undefined,
        };
      if (call) return { role: "assistant", text: "", call: { id: call.id, command: call.args.command } };
      return { role: line.type === "user" ? "user" : "assistant", text };
    });
  });
}

export const profile: Profile = {
  name: "qwen",
  wrapper: "forwards",
  codeOnSigterm: 143,
  parse: (args) => ({
    prompt: optionValues(args, "-p", "--prompt").at(-1) ?? "",
    resume: optionValues(args, "--resume", "-r").at(-1),
    id: optionValues(args, "--session-id").at(-1),
  }),
  newFile: file,
  findFile: (place, id) => (existsSync(file(place, id)) ? { path: file(place, id), id } : undefined),
  header: () => [],
  writesCallFirst: true,
  lines,
  read,
  placeholder: "Tool execution result was not recorded. Treat as failure and retry if needed.",
  unknownSession: (id) => ({
    text: `No saved session found with ID ${id}. Run \`qwen --resume\` without an ID to choose from existing sessions.`,
    stream: "stderr",
    code: 1,
  }),
  errors: {
    429: { text: "[API Error: 429 Rate limit reached]", stream: "stderr", code: 1 },
    529: { text: "[API Error: 529 Overloaded]", stream: "stderr", code: 1 },
    401: { text: "[API Error: 401 Incorrect API key]", stream: "stderr", code: 1 },
  },
  noKey: { variable: "OPENAI_API_KEY", text: "No auth type is selected.", stream: "stderr", code: 1 },
  hooks: (_, { home, env }) => {
    const files = [join(home, ".qwen", "settings.json"), env.QWEN_CODE_SYSTEM_DEFAULTS_PATH ?? ""];
    return commandHooks(
      files.filter(existsSync).map((path) => JSON.parse(readFileSync(path, "utf8")) as CommandHooks),
    );
  },
  events: hookEvents(
    {
      session: "SessionStart",
      prompt: "UserPromptSubmit",
      "before-tool": "PreToolUse",
      "after-tool": "PostToolUse",
      done: "Stop",
    },
    "run_shell_command",
    true,
  ),
};
