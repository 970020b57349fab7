// Claude Code's transcript: one JSON line per block of a message. A call is written before it runs. Subagents have their own
// files; of those, only the calls that are open since the main conversation's last prompt matter.
import type { JsonObject } from "../../platform/json-file.ts";
import {
  asArray,
  asObject,
  asText,
  jsonLinesReader,
  type Step,
  textOf,
  timeMs,
  toolCall,
} from "../transcript.ts";

function stepsOf(line: JsonObject): Step[] {
  const atMs = timeMs(line.timestamp);
  const message = asObject(line.message);
  if (line.type === "system")
    return line.subtype === "compact_boundary" ? [{ kind: "system", text: "compacted", atMs }] : [];
  if (line.type === "user") return line.isMeta === true ? [] : userSteps(message, atMs);
  if (line.type !== "assistant") return [];
  // API errors, and the text that Claude inserts instead of a response after a cut-off call.
  if (message.model === "<synthetic>") return [{ kind: "system", text: textOf(message.content), atMs }];
  const { stop_reason: why } = message;
  const ends = typeof why === "string" && why !== "tool_use";
  const id = asText(message.id) || null;
  const calls = asArray(message.content)
    .map(asObject)
    .filter(({ type }) => type === "tool_use")
    .map(
      (part): Step => ({
        kind: "call",
        call: toolCall(asText(part.id), asText(part.name), part.input),
        atMs,
      }),
    );
  return [{ kind: "response", id, text: textOf(message.content), ends, atMs }, ...calls];
}

function userSteps(message: JsonObject, atMs: number | null): Step[] {
  const parts = asArray(message.content).map(asObject);
  const results = parts.filter(({ type }) => type === "tool_result");
  if (results.length === 0) return [{ kind: "prompt", text: textOf(message.content), atMs }];
  return results.map((part) => ({
    kind: "result",
    id: asText(part.tool_use_id),
    text: textOf(part.content),
    atMs,
  }));
}

export const claudeTranscript = jsonLinesReader(stepsOf, {
  isSide: (name) => name.includes("/subagents/"),
  isTranscript: (name) => name.endsWith(".jsonl"),
});
