// Sessions as files with one JSON document per line, and the messages of Pi, whose format OpenClaw also uses.
import { randomUUID } from "node:crypto";
import { appendFileSync, readFileSync } from "node:fs";
import type { JsonObject } from "../../../src/platform/json-file.ts";
import type { Message, Profile, Refusal, Store } from "./profile.ts";

export const LINES: Store = {
  append: (path, _, lines) =>
    appendFileSync(path, lines.map((line) => `${JSON.stringify(line)}\n`).join(""), { mode: 0o600 }),
  read: (path) =>
    readFileSync(path, "utf8")
      .split("\n")
      .flatMap((line) => {
        try {
          return [JSON.parse(line) as JsonObject];
        } catch {
          return [];
        }
      }),
};

interface Part {
  readonly type: string;
  readonly text?: string;
  readonly id?: string;
  readonly arguments?: { readonly command: string };
}

interface PiMessage {
  readonly role: string;
  readonly content: string | readonly Part[];
  readonly toolCallId?: string;
  readonly isError?: boolean;
  readonly stopReason?: string;
}

/** `tool`: the name of the shell tool. `version`: of the format. */
export function piFormat(
  tool: string,
  version: number,
): Required<Pick<Profile, "header" | "lines" | "read" | "errorLines">> {
  const entry = (type: string, rest: object): JsonObject => ({
    type,
    id: randomUUID().slice(0, 8),
    timestamp: new Date().toISOString(),
    ...rest,
  });
  const said = (message: object) => [entry("message", { message: { ...message, timestamp: Date.now() } })];
  return {
    header: ({ cwd }, id, resumed) => (resumed ? [] : [entry("session", { version, id, cwd })]),
    errorLines: ({ text }: Refusal) =>
      said({ role: "assistant", content: [], stopReason: "error", errorMessage: text }),
    lines: (message) => {
      const content: object[] = [{ type: "text", text: message.text }];
      if (message.role === "user") return said({ role: "user", content });
      if (message.role === "tool") {
        const { id: toolCallId, isError = false } = message;
        return said({ role: "toolResult", toolCallId, toolName: tool, content, isError });
      }
      const { call } = message;
      if (call === undefined) return said({ role: "assistant", content, stopReason: "stop" });
      content.push({ type: "toolCall", id: call.id, name: tool, arguments: { command: call.command } });
      return said({ role: "assistant", content, stopReason: "toolUse" });
    },
    read: (lines) =>
      lines.flatMap(({ type, message }) => {
        const { stopReason, ...rest } = (message ?? {}) as PiMessage;
        return type !== "message" || stopReason === "error" ? [] : [readPiMessage(rest)];
      }),
  };
}

function readPiMessage({ role, content, toolCallId: id = "", isError = false }: PiMessage): Message {
  const parts = typeof content === "string" ? [{ type: "text", text: content }] : content;
  const text = parts.find(({ type }) => type === "text")?.text ?? "";
  if (role === "user") return { role, text };
  if (role === "toolResult") return { role: "tool", id, text, isError };
  const made = parts.find(({ type }) => type === "toolCall");
  const call = made && { id: made.id!, command: made.arguments!.command };
  return { role: "assistant", text, ...(call && { call }) };
}
