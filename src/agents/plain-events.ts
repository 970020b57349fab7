// Hook events in Lazarus's own format, as JSON: `{"kind":"tool-start","call":{"tool":"bash","command":"make"}}`. This is what
// our plugins for OpenCode and Pi report, and what an agent that a user declared reports. Pure; hostile input.
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import { type HookEvent, PATTERN_CLASSES, type PatternClass, type ToolCall } from "./adapter.ts";
import { oneLine } from "./transcript.ts";

/** Claude, Codex, Gemini and Qwen name the event `hook_event_name`, Codex's notify `type`, Cline `hookName`. */
export function eventName({ hook_event_name: common, type, hookName }: JsonObject): string {
  for (const each of [common, type, hookName]) if (typeof each === "string") return each;
  return "";
}

/** The events in one input; none when it is not valid. `event` is the kind when the input has none. */
export function parsePlainEvent(
  event: string,
  input: Readonly<Record<string, unknown>>,
): readonly HookEvent[] {
  const kind = typeof input.kind === "string" ? input.kind : event;
  switch (kind) {
    case "session": {
      const session = text(input.session);
      return session === null ? [] : [{ kind, session, transcript: text(input.transcript) }];
    }
    case "tool-start":
    case "tool-end": {
      const call = parseCall(input.call);
      return call === null ? [] : [{ kind, call }];
    }
    case "failure": {
      const found = PATTERN_CLASSES.find((each): each is PatternClass => each === input.class);
      return found === undefined ? [] : [{ kind, class: found, message: text(input.message) ?? "" }];
    }
    case "session-end":
      return [{ kind, reason: text(input.reason) ?? "" }];
    case "prompt":
    case "turn-end":
    case "compaction":
      return [{ kind }];
    default:
      return [];
  }
}

function parseCall(value: unknown): ToolCall | null {
  if (!isJsonObject(value)) return null;
  const tool = text(value.tool);
  if (tool === null) return null;
  const command = text(value.command);
  return { id: text(value.id), tool, command, summary: oneLine(text(value.summary) ?? command ?? "") };
}

function text(value: unknown): string | null {
  return typeof value === "string" && value !== "" ? value : null;
}
