// Messages of Pi, whose format OpenClaw also uses: one JSON line per entry; entries of type `message` are the conversation. Pure.
import type { JsonObject } from "../platform/json-file.ts";
import { asArray, asObject, asText, type Step, textOf, timeMs, toolCall } from "./transcript.ts";

export function piSteps(line: JsonObject): readonly Step[] {
  if (line.type !== "message") return [];
  const message = asObject(line.message);
  const atMs = timeMs(line.timestamp);
  const text = textOf(message.content);
  switch (message.role) {
    case "user":
      return [{ kind: "prompt", text, atMs }];
    case "toolResult":
      return [{ kind: "result", id: asText(message.toolCallId) || null, text, atMs }];
    case "assistant":
      if (message.stopReason === "error" || message.stopReason === "aborted")
        return [{ kind: "system", text: asText(message.errorMessage) || text, atMs }];
      return [
        { kind: "response", id: asText(line.id) || null, text, ends: message.stopReason === "stop", atMs },
        ...asArray(message.content)
          .map(asObject)
          .filter(({ type }) => type === "toolCall")
          .map(({ id, name, arguments: input }): Step => {
            return { kind: "call", call: toolCall(asText(id) || null, asText(name), input), atMs };
          }),
      ];
    default:
      return [];
  }
}
