// Reads and completes transcripts, as pure functions on plain messages: which tool calls have no result yet, what the
// final answer is, and result messages, which a provider requires for every call.
import type { ModelMessage } from "ai";
import { thrownText } from "./thrown.ts";
import type { Json, TranscriptEntry } from "./types.ts";

/** A tool call without a result in the transcript. */
export interface DanglingCall {
  readonly step: number;
  readonly phase: number;
  /** Position among the calls of its step; part of the effect id. */
  readonly call: number;
  readonly callId: string;
  readonly tool: string;
  readonly input: unknown;
}

interface Part {
  readonly type: string;
  readonly toolCallId?: string;
  readonly toolName?: string;
  readonly input?: unknown;
  readonly text?: string;
  readonly providerExecuted?: boolean;
}

function partsOf(message: ModelMessage): readonly Part[] {
  return typeof message.content === "string" ? [] : (message.content as readonly Part[]);
}

/** The calls of the last assistant message that have no result, in order, except those that the provider executes. */
export function danglingCalls(entries: readonly TranscriptEntry[]): DanglingCall[] {
  const last = entries.findLastIndex(
    ({ message }) => message.role === "assistant" && callsIn(message).length > 0,
  );
  if (last < 0) return [];
  const { step, phase } = entries[last]!;
  // A provider may give two calls of one step the same id, so results are counted.
  const results = new Map<string, number>();
  for (const { message } of entries.slice(last + 1)) {
    if (message.role !== "tool") continue;
    for (const part of partsOf(message)) {
      if (part.type === "tool-result")
        results.set(part.toolCallId!, (results.get(part.toolCallId!) ?? 0) + 1);
    }
  }
  const open: DanglingCall[] = [];
  for (const [call, part] of callsIn(entries[last]!.message).entries()) {
    const left = results.get(part.toolCallId!) ?? 0;
    if (left > 0) results.set(part.toolCallId!, left - 1);
    else open.push({ step, phase, call, callId: part.toolCallId!, tool: part.toolName!, input: part.input });
  }
  return open;
}

function callsIn(message: ModelMessage): Part[] {
  return partsOf(message).filter(
    ({ type, providerExecuted }) => type === "tool-call" && providerExecuted !== true,
  );
}

/** Adds missing call ids: a result could not be matched to a call without one. */
export function withCallIds(message: ModelMessage, step: number): ModelMessage {
  if (message.role !== "assistant" || callsIn(message).every(({ toolCallId }) => toolCallId)) return message;
  const content = partsOf(message).map((part, i) =>
    part.type === "tool-call" && !part.toolCallId ? { ...part, toolCallId: `call-${step}-${i}` } : part,
  );
  return { ...message, content } as ModelMessage;
}

/** The text of the last message if it is an assistant message without calls, which ends the phase. */
export function finalText(entries: readonly TranscriptEntry[]): string | undefined {
  const message = entries.at(-1)?.message;
  if (message?.role !== "assistant" || callsIn(message).length > 0) return undefined;
  return textOf(message);
}

/** The text of a message, without calls, files and reasoning. */
export function textOf(message: ModelMessage): string {
  if (typeof message.content === "string") return message.content;
  return partsOf(message)
    .filter(({ type }) => type === "text")
    .map(({ text }) => text ?? "")
    .join("");
}

/** The result of a call. */
export type ToolOutcome =
  | { readonly ok: true; readonly output: unknown }
  | { readonly ok: false; readonly text: string };

/** The message that returns the result of a call to the model. */
export function resultMessage(call: DanglingCall, outcome: ToolOutcome): ModelMessage {
  return {
    role: "tool",
    content: [
      {
        type: "tool-result",
        toolCallId: call.callId,
        toolName: call.tool,
        output: outcome.ok ? outputPart(outcome.output) : { type: "error-text", value: outcome.text },
      },
    ],
  };
}

function outputPart(output: unknown): { type: "text"; value: string } | { type: "json"; value: never } {
  if (typeof output === "string") return { type: "text", value: output };
  let json: string | undefined;
  try {
    json = JSON.stringify(output, (_, value) => (typeof value === "bigint" ? String(value) : value));
  } catch (error) {
    // The effect happened, and the model must learn that even if the result cannot be serialized.
    return { type: "text", value: `The call succeeded; its result is not JSON: ${thrownText(error)}` };
  }
  return { type: "json", value: (json === undefined ? null : JSON.parse(json)) as Json as never };
}
