// The transcript of a run as messages, made from its entries. Step n is the nth answer of the model with the results of its
// calls; what was said before an answer belongs to the step before it. Pure.
import type { ModelMessage } from "ai";
import type { TranscriptEntry } from "../model/types.ts";
import { type EffectValue, type Entry, keyOf } from "./entry.ts";

interface Item {
  readonly type: string;
  readonly [field: string]: unknown;
}

interface Input {
  readonly call: {
    readonly messages?: readonly ModelMessage[];
    readonly prompt?: string | readonly ModelMessage[];
  };
  readonly phase?: number;
  readonly given?: number;
}

/** The messages of a run. */
export function transcriptOf(entries: readonly Entry[]): TranscriptEntry[] {
  const byKey = new Map(entries.map((entry) => [keyOf(entry.step, entry.kind, entry.call), entry]));
  const lastStep = Math.max(0, ...entries.map(({ kind, step }) => (kind === "response" ? step : 0)));
  const inputs = entries.filter(({ kind }) => kind === "input").sort((a, b) => a.call - b.call);
  const messages = entries.filter(({ kind }) => kind === "message").sort((a, b) => a.call - b.call);
  const inserted = Map.groupBy(messages, ({ step }) => step);
  const transcript: TranscriptEntry[] = [];
  let phase = 0;
  for (const [i, { step: base, value }] of inputs.entries()) {
    const { input, approvals = [] } = value as { input?: Input; approvals?: readonly object[] };
    phase = input?.phase ?? phase;
    if (input !== undefined) transcript.push(...opening(input, base));
    else transcript.push({ step: base, phase, message: answered(approvals) });
    const end = inputs[i + 1]?.step ?? lastStep;
    for (let step = base + 1; step <= end; step += 1) {
      for (const message of messagesAt(inserted, step)) transcript.push({ step: step - 1, phase, message });
      for (const message of stepMessages(byKey, step, lastStep)) transcript.push({ step, phase, message });
    }
  }
  for (const message of messagesAt(inserted, lastStep + 1))
    transcript.push({ step: lastStep, phase, message });
  return transcript;
}

/** The input of an agent with phases precedes all of them. */
function opening({ call, phase = 0, given = 0 }: Input, step: number): TranscriptEntry[] {
  const { prompt } = call;
  const asked = typeof prompt === "string" ? [{ role: "user" as const, content: prompt }] : (prompt ?? []);
  const messages = call.messages ?? asked;
  return messages.map((message, i) => ({ step, phase: i < given ? -1 : phase, message }));
}

interface Sent {
  readonly type?: string;
  readonly toolCallId?: string;
  readonly approvalId?: string;
}

/**
 * The answers of a human as parts of a message, after what the client sent with them about other calls: once, because a client
 * repeats with a later answer what it sent with an earlier one.
 */
export function answerParts(approvals: readonly { readonly sent?: readonly object[] }[]): object[] {
  const told = new Set<string>();
  const keyOfSent = ({ type, toolCallId, approvalId }: Sent) => `${type} ${approvalId ?? toolCallId}`;
  const others = approvals.flatMap(({ sent = [] }) => {
    const added = sent.filter((part) => !told.has(keyOfSent(part)));
    for (const part of added) told.add(keyOfSent(part));
    return added;
  });
  const answers = approvals.map(({ sent: _, ...approval }) => ({
    type: "tool-approval-response",
    ...approval,
  }));
  return [...others, ...answers];
}

function answered(approvals: readonly object[]): ModelMessage {
  return { role: "tool", content: answerParts(approvals) } as unknown as ModelMessage;
}

function messagesAt(inserted: ReadonlyMap<number, readonly Entry[]>, step: number): ModelMessage[] {
  return (inserted.get(step) ?? []).map(({ value }) => (value as { message: ModelMessage }).message);
}

function stepMessages(entries: ReadonlyMap<string, Entry>, step: number, lastStep: number): ModelMessage[] {
  const response = entries.get(keyOf(step, "response", 0));
  if (response === undefined) return [];
  const items = itemsOf(response.value);
  const content = items.flatMap(partOf);
  const said = { role: "assistant", content: content.length === 0 ? "" : content } as unknown as ModelMessage;
  const calls = items.filter(
    ({ type, providerExecuted }) => type === "tool-call" && providerExecuted !== true,
  );
  const results = calls.flatMap((call, i) => {
    const { toolCallId, toolName } = call;
    const output = outputOf(entries.get(keyOf(step, "effect", i)), step < lastStep);
    return output === undefined ? [] : [{ type: "tool-result", toolCallId, toolName, output }];
  });
  return results.length === 0
    ? [said]
    : [said, { role: "tool", content: results } as unknown as ModelMessage];
}

/** The items of a response; blocks of streamed text are joined. */
function itemsOf(value: unknown): readonly Item[] {
  const { result, parts } = value as { result?: { content?: readonly Item[] }; parts?: readonly Item[] };
  if (parts === undefined) return result?.content ?? [];
  const open = new Map<unknown, Item & { text: string }>();
  return parts.flatMap((part): Item[] => {
    const [, kind, edge] = /^(text|reasoning)-(start|delta|end)$/.exec(part.type) ?? [];
    if (kind === undefined) return CONTENT.has(part.type) ? [part] : [];
    if (edge === "delta") {
      const block = open.get(part.id);
      if (block !== undefined) block.text += String(part.delta);
      return [];
    }
    if (edge === "end") return [];
    const block = { type: kind, text: "" };
    open.set(part.id, block);
    return [block];
  });
}

const CONTENT: ReadonlySet<string> = new Set(["tool-call", "tool-result", "file", "source"]);

function partOf(item: Item): Item[] {
  const { type, toolCallId, toolName, providerExecuted } = item;
  switch (type) {
    case "text":
    case "reasoning":
      return [{ type, text: item.text }];
    case "tool-call":
      return [
        {
          type,
          toolCallId,
          toolName,
          input: parsed(item.input),
          ...(providerExecuted ? { providerExecuted } : {}),
        },
      ];
    case "tool-result":
      return [{ type, toolCallId, toolName, output: { type: "json", value: item.result } }];
    case "file":
      return [{ type, mediaType: item.mediaType, data: item.data }];
    default:
      return [];
  }
}

function parsed(input: unknown): unknown {
  try {
    return typeof input === "string" ? JSON.parse(input) : input;
  } catch {
    return input;
  }
}

/** The result of a call. One that the SDK refused has no entry. */
function outputOf(effect: Entry | undefined, isOver: boolean): object | undefined {
  if (effect === undefined || (effect.state === "prepared" && isOver)) {
    const value = "the call was not made: no such tool, or an invalid input";
    return isOver ? { type: "error-text", value } : undefined;
  }
  const { output, error } = (effect.value ?? {}) as EffectValue;
  if (effect.state === "failed") return { type: "error-text", value: error ?? "the call failed" };
  if (effect.state !== "done") return undefined;
  return typeof output === "string"
    ? { type: "text", value: output }
    : { type: "json", value: output ?? null };
}
