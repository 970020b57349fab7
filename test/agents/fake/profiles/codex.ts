// Codex: its own ids, a wrapper process, rollouts by day, and hooks that run only if they are trusted.
import { createHash, randomInt, randomUUID } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import type { JsonObject } from "../../../../src/platform/json-file.ts";
import { optionValues, positional } from "../command-line.ts";
import { hookEvents } from "../events.ts";
import type { Hook, Message, Place, Profile } from "../profile.ts";

const sessions = ({ home, env }: Place) => join(env.CODEX_HOME ?? join(home, ".codex"), "sessions");
const line = (type: string, payload: JsonObject, metadata?: JsonObject): JsonObject => ({
  timestamp: new Date().toISOString(),
  type,
  payload,
  ...(metadata && { metadata }),
});

function lines(message: Message): JsonObject[] {
  if (message.role === "user") {
    const item = { type: "UserMessage", content: [{ type: "text", text: message.text }] };
    const content = [{ type: "input_text", text: message.text }];
    return [
      line("response_item", { type: "message", role: "user", content }),
      line("event_msg", { type: "item_completed", item }),
    ];
  }
  if (message.role === "tool")
    return [
      line("response_item", { type: "function_call_output", call_id: message.id, output: message.text }),
    ];
  const { text, call } = message;
  const metadata = { sampled_through_sequence: randomInt(2 ** 40) };
  const content = [{ type: "output_text", text }];
  const reply = line(
    "response_item",
    { type: "message", id: randomUUID(), role: "assistant", content },
    metadata,
  );
  if (call === undefined)
    return [reply, line("event_msg", { type: "task_complete", last_agent_message: text })];
  const { id: call_id, command } = call;
  const toolCall = {
    type: "function_call",
    name: "exec_command",
    arguments: JSON.stringify({ cmd: command }),
    call_id,
  };
  return [reply, line("response_item", toolCall, metadata)];
}

function read(all: readonly JsonObject[]): Message[] {
  return all.flatMap(({ type, payload }): Message[] => {
    const item = payload as Record<string, string> & { content: { text: string }[] };
    if (type !== "response_item") return [];
    if (item.type === "function_call_output")
      return [{ role: "tool", id: item.call_id!, text: item.output!, isError: item.output === "aborted" }];
    if (item.type === "function_call")
      return [
        {
          role: "assistant",
          text: "",
          call: { id: item.call_id!, command: JSON.parse(item.arguments!).cmd },
        },
      ];
    return [{ role: item.role === "user" ? "user" : "assistant", text: item.content[0]!.text }];
  });
}

/** `-c hooks.Event=[…]`, if `-c hooks.state={…}` trusts exactly this definition. FAKE_HASH: a version that hashes more. */
function hooks(args: readonly string[], { env }: Place): Readonly<Record<string, Hook[]>> {
  const settings = optionValues(args, "-c", "--config");
  const state = settings.find((each) => each.startsWith("hooks.state=")) ?? "";
  const found: Record<string, Hook[]> = {};
  for (const setting of settings) {
    const match =
      /^hooks\.(\w+)=\[\{hooks=\[\{type="command",command=("(?:[^"\\]|\\.)*"),timeout=(\d+)\}\]\}\]$/.exec(
        setting,
      );
    if (match === null) continue;
    const [, event = "", quoted = "", timeout] = match;
    const command = JSON.parse(quoted) as string;
    const name = event.replaceAll(/(?<=[a-z])[A-Z]/g, (letter) => `_${letter}`).toLowerCase();
    const definition = { async: false, command, timeout: Number(timeout), type: "command" };
    const identity = JSON.stringify({ event_name: name, hooks: [definition] }) + (env.FAKE_HASH ?? "");
    const hash = createHash("sha256").update(identity).digest("hex");
    if (state.includes(`"/<session-flags>/config.toml:${name}:0:0"={trusted_hash="sha256:${hash}"}`))
      found[event] = [{ command }];
  }
  return found;
}

export const profile: Profile = {
  name: "codex",
  wrapper: "forwards",
  codeOnSigterm: 143,
  parse: (args) => {
    const words = positional(args, ["-c", "--config", "-m", "-s", "-C"]).filter((word) => word !== "exec");
    const isResume = words[0] === "resume";
    return { prompt: words.at(-1) ?? "", resume: isResume ? words[1] : undefined };
  },
  newFile: (place, id, atMs) => {
    const time = new Date(atMs).toISOString().slice(0, 19);
    const day = time.slice(0, 10).replaceAll("-", "/");
    return join(sessions(place), day, `rollout-${time.replaceAll(":", "-")}-${id}.jsonl`);
  },
  findFile: (place, id) => {
    const root = sessions(place);
    const names = existsSync(root) ? readdirSync(root, { recursive: true, encoding: "utf8" }) : [];
    const name = names.find((each) => each.endsWith(`-${id}.jsonl`));
    return name === undefined ? undefined : { path: join(root, name), id };
  },
  header: (place, id) => [line("session_meta", { id, cwd: place.cwd, originator: "codex_exec" })],
  writesCallFirst: true,
  lines,
  read,
  placeholder: "aborted",
  announce: (id) => `session id: ${id}`,
  unknownSession: (id) => ({
    text: `Error: thread/resume: thread/resume failed: no rollout found for thread id ${id} (code -32600)`,
    stream: "stderr",
    code: 1,
  }),
  errors: {
    429: {
      text: "ERROR: exceeded retry limit, last status: 429 Too Many Requests",
      stream: "stderr",
      code: 1,
    },
    529: {
      text: "ERROR: unexpected status 529 <unknown status code>: Overloaded",
      stream: "stderr",
      code: 1,
    },
    401: { text: "ERROR: unexpected status 401 Unauthorized: Invalid key", stream: "stderr", code: 1 },
  },
  noKey: {
    variable: "OPENAI_API_KEY",
    text: "ERROR: unexpected status 401 Unauthorized: ",
    stream: "stderr",
    code: 1,
  },
  errorLines: ({ text }) => [
    line("event_msg", { type: "task_complete", last_agent_message: null, error: { message: text } }),
  ],
  hooks,
  events: hookEvents(
    {
      session: "SessionStart",
      prompt: "UserPromptSubmit",
      "before-tool": "PreToolUse",
      "after-tool": "PostToolUse",
      done: "Stop",
      "session-end": "SessionEnd",
    },
    "Bash",
    true,
  ),
};
