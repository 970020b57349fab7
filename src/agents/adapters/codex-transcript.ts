// Codex's rollout: items of the conversation as the API has them, and events of the agent. A call is written before it runs;
// a turn has ended when its event says so.
import type { JsonObject } from "../../platform/json-file.ts";
import {
  asObject,
  asText,
  jsonLinesReader,
  parseJson,
  type Step,
  textOf,
  timeMs,
  toolCall,
} from "../transcript.ts";

function stepsOf(line: JsonObject): readonly Step[] {
  const atMs = timeMs(line.timestamp);
  const payload = asObject(line.payload);
  if (line.type === "event_msg") return eventSteps(payload, atMs);
  return line.type === "response_item" ? itemSteps(payload, asObject(line.metadata), atMs) : [];
}

/** Prompts are taken from events: among the items, the agent's own context looks the same. */
function eventSteps(payload: JsonObject, atMs: number | null): Step[] {
  const item = asObject(payload.item);
  if (payload.type === "user_message") return [{ kind: "prompt", text: asText(payload.message), atMs }];
  if (item.type === "UserMessage") return [{ kind: "prompt", text: textOf(item.content), atMs }];
  const failure = asText(asObject(payload.error).message);
  if (payload.type === "task_complete")
    return [failure === "" ? { kind: "end", atMs } : { kind: "system", text: failure, atMs }];
  const isFailure = payload.type === "turn_aborted" || payload.type === "error";
  return isFailure ? [{ kind: "system", text: asText(payload.message) || asText(payload.reason), atMs }] : [];
}

function itemSteps(payload: JsonObject, metadata: JsonObject, atMs: number | null): Step[] {
  const type = asText(payload.type);
  // Items of one response have the same sequence number. Earlier versions do not write it.
  const { sampled_through_sequence: sampled } = metadata;
  const id = typeof sampled === "number" ? String(sampled) : asText(payload.id) || null;
  if (type === "message" && payload.role === "assistant")
    return [{ kind: "response", id, text: textOf(payload.content), ends: false, atMs }];
  if (type.endsWith("_call_output"))
    return [{ kind: "result", id: asText(payload.call_id), text: textOf(payload.output), atMs }];
  if (!type.endsWith("_call") || payload.call_id === undefined) return [];
  const input = payload.arguments ?? payload.input ?? payload.action;
  const call = toolCall(
    asText(payload.call_id),
    asText(payload.name) || type,
    typeof input === "string" ? (parseJson(input) ?? { input }) : input,
  );
  return [
    { kind: "response", id, text: "", ends: false, atMs },
    { kind: "call", call, atMs },
  ];
}

export const codexTranscript = jsonLinesReader(stepsOf);
