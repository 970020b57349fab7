// Pi: its own ids, one file per session, extensions in its own process, and a result made up for a cut-off call.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { JsonObject } from "../../../../src/platform/json-file.ts";
import { optionValues, positional } from "../command-line.ts";
import { piFormat } from "../lines.ts";
import type { Call, Hook, Place, Profile } from "../profile.ts";

const sessions = ({ cwd, home, env }: Place) =>
  env.PI_CODING_AGENT_SESSION_DIR ??
  join(home, ".pi", "agent", "sessions", `--${cwd.slice(1).replaceAll(/[/:]/g, "-")}--`);
const error = (text: string) => ({ text, stream: "stderr" as const, code: 1 });
const called = ({ id, command }: Call) => ({ toolCallId: id, toolName: "bash", args: { command } });

type Extension = (pi: {
  on: (name: string, handle: (event: JsonObject, context: object) => void) => void;
}) => void;

async function hooks(args: readonly string[]): Promise<Record<string, Hook[]>> {
  const found: Record<string, Hook[]> = {};
  for (const file of optionValues(args, "-e", "--extension")) {
    const { default: extend } = (await import(pathToFileURL(file).href)) as { default: Extension };
    extend({
      on(name, handle) {
        const run: Hook = {
          run: (event, { id, path }) =>
            handle(event, { sessionManager: { getSessionId: () => id, getSessionFile: () => path } }),
        };
        found[name] = [...(found[name] ?? []), run];
      },
    });
  }
  return found;
}

export const profile: Profile = {
  name: "pi",
  wrapper: "none",
  codeOnSigterm: 143,
  parse: (args) => ({
    prompt: positional(args, ["-e", "--extension", "--session"]).at(-1) ?? "",
    resume: optionValues(args, "--session").at(-1),
  }),
  newFile: (place, id, atMs) =>
    join(sessions(place), `${new Date(atMs).toISOString().replaceAll(/[:.]/g, "-")}_${id}.jsonl`),
  findFile: (place, id) => {
    const directory = sessions(place);
    const names = existsSync(directory) ? readdirSync(directory) : [];
    const name = names.find((each) => each.endsWith(`_${id}.jsonl`));
    return name === undefined ? undefined : { path: join(directory, name), id };
  },
  ...piFormat("bash", 3),
  writesCallFirst: true,
  placeholder: "No result provided",
  inventsPlaceholder: true,
  unknownSession: (id) => error(`No session found matching '${id}'`),
  errors: {
    429: error('429 {"type":"error","error":{"type":"rate_limit_error"}}'),
    529: error('529 {"type":"error","error":{"type":"overloaded_error"}}'),
    401: error('401 {"type":"error","error":{"type":"authentication_error"}}'),
  },
  noKey: { variable: "ANTHROPIC_API_KEY", ...error("No API key found for anthropic.") },
  hooks,
  events: (moment) => {
    const event = (name: string, input: JsonObject) => [{ event: name, input }];
    switch (moment.kind) {
      case "session":
        return event("session_start", { reason: "startup" });
      case "prompt":
        return event("before_agent_start", { prompt: moment.text });
      case "before-tool":
        return event("tool_execution_start", called(moment.call));
      case "after-tool":
        return event("tool_execution_end", { ...called(moment.call), result: moment.text, isError: false });
      case "done":
        return event("agent_end", { messages: [{ role: "assistant", stopReason: "stop" }] });
      case "failure":
        return event("agent_end", { messages: [{ stopReason: "error", errorMessage: moment.text }] });
      case "session-end":
        return event("session_shutdown", { reason: "quit" });
    }
  },
};
