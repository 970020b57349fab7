// Hooks in the format of Claude Code, which Codex, Gemini and Qwen adopted: `{"hooks": {Event: [{matcher, hooks: […]}]}}`
// in a JSON file, and the event as a JSON object on stdin. Pure.
import { join } from "node:path";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import { shellWord } from "../platform/shell-word.ts";
import type {
  FailurePatterns,
  HookEvent,
  HookSetup,
  InstallPlan,
  PatternClass,
  ToolCall,
} from "./adapter.ts";
import { classifyMessage } from "./failure-patterns.ts";
import { type CallCommands, installedCalls, silentInRun } from "./tool-reports.ts";
import { asText, oneLine, toolCall } from "./transcript.ts";

export interface HookDialect {
  /** Events to report; tool events have a matcher. */
  readonly events: Readonly<Record<string, { readonly matcher?: string }>>;
  /** Timeout of one hook, in the agent's unit. */
  readonly timeout: number;
  /** Fields besides type, command and timeout. */
  readonly extra?: JsonObject;
}

/** The value of `hooks`. `calls` are the commands before and after a tool call. */
export function hooksOf(
  command: readonly string[],
  { events, timeout, extra }: HookDialect,
  calls: CallCommands,
): JsonObject {
  return Object.fromEntries(
    Object.entries(events).map(([event, { matcher }]) => {
      const line = hookLine(event, command, calls);
      const hook = { ...extra, type: "command", command: line, timeout };
      return [event, [{ ...(matcher !== undefined && { matcher }), hooks: [hook] }]];
    }),
  );
}

/** The shell line of an event's hook. */
export function hookLine(event: string, command: readonly string[], calls: CallCommands): string {
  const { [event]: meaning = GEMINI_MEANINGS[event] } = CLAUDE_MEANINGS;
  const { started, ended, prompted } = calls;
  const own: Partial<Record<Meaning, readonly string[]>> = {
    "tool-start": started,
    "tool-end": ended,
    prompt: prompted,
  };
  return ((meaning && own[meaning]) ?? command).map(shellWord).join(" ");
}

/** For one run: our own settings file, named by a variable that the user has not set. */
export function settingsFileSetup(
  name: string,
  variable: string,
  directory: string,
  hooks: JsonObject,
): HookSetup {
  const file = `${name}.json`;
  return {
    args: [],
    env: { [variable]: join(directory, file) },
    files: [{ name: file, text: JSON.stringify({ hooks }) }],
  };
}

export const NO_HOOKS: HookSetup = { args: [], env: {}, files: [] };

/** Adds our hooks to a settings file, or removes them; everything else in it stays. */
export function hooksInSettings(
  path: string,
  name: string,
  command: readonly string[],
  dialect: HookDialect,
): InstallPlan {
  return {
    path,
    apply(text) {
      const before = parseSettings(text ?? "{}", path);
      const { settings } = withoutOurs(before, name);
      const hooks = { ...settings.hooks };
      for (const [event, ours] of Object.entries(
        hooksOf(silentInRun(command), dialect, installedCalls(command)),
      ))
        hooks[event] = [...listOf(hooks[event]), ...listOf(ours)];
      const after = { ...settings, hooks };
      return text !== null && JSON.stringify(after) === JSON.stringify(before) ? text : format(after, text);
    },
    remove(text) {
      const { settings, removed } = withoutOurs(parseSettings(text, path), name);
      if (removed === 0) return text;
      if (Object.keys(settings.hooks ?? {}).length === 0) delete settings.hooks;
      return Object.keys(settings).length === 0 ? null : format(settings, text);
    },
  };
}

type Settings = JsonObject & { hooks?: JsonObject };

function parseSettings(text: string, path: string): Settings {
  const value: unknown = JSON.parse(text.trim() === "" ? "{}" : text);
  if (!isJsonObject(value)) throw new Error(`${path} is not a JSON object`);
  if (value.hooks !== undefined && !isJsonObject(value.hooks))
    throw new Error(`"hooks" in ${path} is not a JSON object`);
  return value as Settings;
}

/** The settings without our hooks, of this version or an earlier one, with any installation path. */
function withoutOurs(
  before: Settings,
  name: string,
): { readonly settings: Settings; readonly removed: number } {
  const ours = new RegExp(`(?:^|[\\s/'])lazarus(?:\\.m?js)?'? hook ${name}(?: --installed)?$`);
  const isOurs = (hook: unknown) => isJsonObject(hook) && ours.test(asText(hook.command));
  let removed = 0;
  const hooks: JsonObject = {};
  for (const [event, entries] of Object.entries(before.hooks ?? {})) {
    const kept = listOf(entries).filter((entry) => {
      const list = isJsonObject(entry) ? listOf(entry.hooks) : [];
      return list.length === 0 || !list.every(isOurs);
    });
    removed += listOf(entries).length - kept.length;
    if (!Array.isArray(entries)) hooks[event] = entries;
    else if (kept.length > 0 || entries.length === 0) hooks[event] = kept;
  }
  const settings: Settings = { ...before };
  if (before.hooks !== undefined) settings.hooks = hooks;
  return { settings, removed };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

/** Indented as the file was. */
function format(value: JsonObject, before: string | null): string {
  const indent = before === null ? "  " : (/^[{[]\r?\n([ \t]+)/.exec(before.trimStart())?.[1] ?? "  ");
  return `${JSON.stringify(value, null, indent)}${before === null || before.endsWith("\n") ? "\n" : ""}`;
}

/** What an event means; the names differ from agent to agent. */
export type Meaning =
  | "session"
  | "prompt"
  | "tool-start"
  | "tool-end"
  | "turn-end"
  | "failure"
  | "compaction"
  | "session-end";

/** Claude Code's events, for it and for those that use its names. */
export const CLAUDE_MEANINGS: Readonly<Record<string, Meaning>> = {
  SessionStart: "session",
  UserPromptSubmit: "prompt",
  PreToolUse: "tool-start",
  PostToolUse: "tool-end",
  PostToolUseFailure: "tool-end",
  Stop: "turn-end",
  StopFailure: "failure",
  PreCompact: "compaction",
  SessionEnd: "session-end",
};

/** Gemini's. */
export const GEMINI_MEANINGS: Readonly<Record<string, Meaning>> = {
  SessionStart: "session",
  BeforeAgent: "prompt",
  BeforeTool: "tool-start",
  AfterTool: "tool-end",
  AfterAgent: "turn-end",
  SessionEnd: "session-end",
};

/** StopFailure's `error` → class. */
const FAILURES: Readonly<Record<string, PatternClass>> = {
  rate_limit: "quota",
  server_error: "overload",
  overloaded: "overload",
  authentication_failed: "auth",
  billing_error: "auth",
  invalid_request: "permanent",
};

export function hookParser(
  meanings: Readonly<Record<string, Meaning>>,
  patterns: FailurePatterns,
): (event: string, input: JsonObject) => readonly HookEvent[] {
  return (event, input) => {
    const kind = Object.hasOwn(meanings, event) ? meanings[event] : undefined;
    switch (kind) {
      case undefined:
        return [];
      case "session": {
        const session = asText(input.session_id);
        return session === "" ? [] : [{ kind, session, transcript: asText(input.transcript_path) || null }];
      }
      case "tool-start":
      case "tool-end":
        return [{ kind, call: calledTool(input) }];
      case "failure": {
        const message = asText(input.last_assistant_message) || asText(input.error);
        const found = FAILURES[asText(input.error)] ?? classifyMessage(message, patterns);
        return found === undefined ? [] : [{ kind, class: found, message: oneLine(message) }];
      }
      case "session-end":
        return [{ kind, reason: asText(input.reason) }];
      default:
        return [{ kind }];
    }
  };
}

/** The model's id of the call, which is the one in the transcript: Qwen's `tool_use_id` is another. */
function calledTool(input: JsonObject): ToolCall {
  const id = asText(input.tool_call_id) || asText(input.tool_use_id) || null;
  return toolCall(id, asText(input.tool_name), input.tool_input);
}
