// Gemini CLI: a call is written only once it has ended, a resume leaves a second file of the same id, the wrapper ignores
// SIGTERM, and the real process exits 0 on it.
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { JsonObject } from "../../../../src/platform/json-file.ts";
import { type CommandHooks, commandHooks, optionValues } from "../command-line.ts";
import { hookEvents } from "../events.ts";
import type { Message, Place, Profile } from "../profile.ts";

const config = ({ home, env }: Place) => join(env.GEMINI_CLI_HOME ?? home, ".gemini");
const chats = (place: Place) => join(config(place), "tmp", basename(place.cwd).toLowerCase(), "chats");
const fileName = (id: string, atMs: number) =>
  `session-${new Date(atMs).toISOString().slice(0, 16).replaceAll(":", "-")}-${id.slice(0, 8)}.jsonl`;

function lines(message: Message): JsonObject[] {
  const timestamp = new Date().toISOString();
  if (message.role === "user")
    return [{ id: randomUUID(), timestamp, type: "user", content: [{ text: message.text }] }];
  if (message.role === "tool") {
    const functionResponse = {
      id: message.id,
      name: "run_shell_command",
      response: { output: message.text },
    };
    return [{ id: randomUUID(), timestamp, type: "user", content: [{ functionResponse }] }];
  }
  const { text, call } = message;
  // The text comes first, and once more with the call when that has ended.
  const spoken = { id: call?.id ?? randomUUID(), timestamp, type: "gemini", content: text };
  if (call === undefined) return [spoken];
  const toolCalls = [
    { id: call.id, name: "run_shell_command", args: { command: call.command }, status: "success" },
  ];
  return [{ ...spoken, toolCalls }];
}

interface Line {
  type?: string;
  content?: string | { text?: string; functionResponse?: { id: string; response: { output: string } } }[];
  toolCalls?: { id: string; args: { command: string } }[];
}

function read(all: readonly JsonObject[]): Message[] {
  return (all as readonly Line[]).flatMap(({ type, content, toolCalls }): Message[] => {
    if (type === "gemini") {
      const [call] = toolCalls ?? [];
      const text = content as string;
      return [
        { role: "assistant", text, ...(call && { call: { id: call.id, command: call.args.command } }) },
      ];
    }
    if (type !== "user" || !Array.isArray(content)) return [];
    const [{ text = "", functionResponse: result } = {}] = content;
    return [result ? { role: "tool", id: result.id, text: result.response.output } : { role: "user", text }];
  });
}

const header = (id: string): JsonObject => ({
  sessionId: id,
  startTime: new Date().toISOString(),
  kind: "main",
});
const error = (status: number) => ({
  text: `Error when talking to Gemini API\nApiError: {}\n  status: ${status}\n}`,
  stream: "stderr" as const,
  code: 1,
});

export const profile: Profile = {
  name: "gemini",
  wrapper: "ignores",
  noWrapper: "GEMINI_CLI_NO_RELAUNCH",
  codeOnSigterm: 0,
  parse: (args) => ({
    prompt: optionValues(args, "-p", "--prompt").at(-1) ?? "",
    resume: optionValues(args, "--resume", "-r").at(-1),
    id: optionValues(args, "--session-id").at(-1),
  }),
  newFile: (place, id, atMs) => join(chats(place), fileName(id, atMs)),
  findFile: (place, id) => {
    const directory = chats(place);
    const names = existsSync(directory) ? readdirSync(directory).sort() : [];
    const name = names.find((each) => each.endsWith(`-${id.slice(0, 8)}.jsonl`));
    if (name === undefined) return undefined;
    // A minute later than the first: nearly empty, like the real one.
    const second = join(directory, fileName(id, Date.now() + 60_000));
    if (!existsSync(second)) writeFileSync(second, `${JSON.stringify(header(id))}\n`);
    return { path: join(directory, name), id };
  },
  header: (_, id) => [header(id)],
  writesCallFirst: false,
  before: (message) => lines(message).map(({ toolCalls: _, ...spoken }) => spoken),
  lines,
  read,
  placeholder: null,
  unknownSession: (id) => ({
    text: `Error resuming session: Invalid session identifier "${id}".`,
    stream: "stderr",
    code: 42,
  }),
  errors: { 429: error(429), 529: error(529), 401: error(401) },
  noKey: {
    variable: "GEMINI_API_KEY",
    text: "Please set an Auth method in your settings.json",
    stream: "stderr",
    code: 41,
  },
  hooks: (_, place) => {
    const files = [join(config(place), "settings.json"), place.env.GEMINI_CLI_SYSTEM_DEFAULTS_PATH ?? ""];
    return commandHooks(
      files.filter(existsSync).map((path) => JSON.parse(readFileSync(path, "utf8")) as CommandHooks),
    );
  },
  events: hookEvents(
    {
      session: "SessionStart",
      prompt: "BeforeAgent",
      "before-tool": "BeforeTool",
      "after-tool": "AfterTool",
      done: "AfterAgent",
      "session-end": "SessionEnd",
    },
    "run_shell_command",
    false,
  ),
};
