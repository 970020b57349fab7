// The response of a model in its two shapes: the result of `doGenerate` and the parts of `doStream`. A run that was started
// with one of them can be followed or resumed with the other. Pure.
import type { Usage } from "../model/types.ts";
import type { ResponseCall } from "./live-run.ts";

/** A part of a streamed response, as providers send it. */
export interface StreamPart {
  readonly type: string;
  readonly [field: string]: unknown;
}

/** A whole response, as providers return it. */
export interface GenerateResult {
  readonly content: readonly StreamPart[];
  readonly finishReason: { readonly unified: string; readonly raw: string | undefined };
  readonly usage: unknown;
  readonly warnings: readonly unknown[];
  readonly providerMetadata?: unknown;
  readonly request?: { readonly body?: unknown };
  readonly response?: Readonly<Record<string, unknown>>;
}

/** What the entry of a response holds. */
export type RecordedResponse = { readonly provider: string; readonly modelId: string } & (
  | { readonly result: GenerateResult }
  | { readonly parts: readonly StreamPart[]; readonly response?: unknown; readonly request?: unknown }
);

const DELTA = /^(?:text|reasoning|tool-input)-delta$/;

/** Joins consecutive deltas of the same block. */
export function compactParts(parts: readonly StreamPart[]): StreamPart[] {
  const joined: Record<string, unknown>[] = [];
  for (const part of parts) {
    const last = joined.at(-1);
    if (
      last !== undefined &&
      DELTA.test(part.type) &&
      last.type === part.type &&
      last.id === part.id &&
      part.providerMetadata === undefined
    ) {
      last.delta = `${last.delta}${part.delta}`;
    } else joined.push({ ...part });
  }
  return joined as StreamPart[];
}

/** A whole response as parts. */
export function partsOf(recorded: RecordedResponse): readonly StreamPart[] {
  if ("parts" in recorded) return recorded.parts;
  const { content, finishReason, usage, warnings, providerMetadata, response = {} } = recorded.result;
  const { id, timestamp, modelId } = response;
  const blocks = content.flatMap((item, i) => blockParts(item, String(i)));
  return [
    { type: "stream-start", warnings },
    { type: "response-metadata", id, timestamp, modelId },
    ...blocks,
    { type: "finish", finishReason, usage, ...(providerMetadata === undefined ? {} : { providerMetadata }) },
  ];
}

function blockParts(item: StreamPart, id: string): StreamPart[] {
  const { type, text, providerMetadata } = item;
  const more = providerMetadata === undefined ? {} : { providerMetadata };
  if (type === "text" || type === "reasoning") {
    return [
      { type: `${type}-start`, id, ...more },
      { type: `${type}-delta`, id, delta: text },
      { type: `${type}-end`, id, ...more },
    ];
  }
  if (type !== "tool-call") return [item];
  const { toolCallId, toolName, input, providerExecuted, dynamic } = item;
  const flags = { ...(providerExecuted ? { providerExecuted } : {}), ...(dynamic ? { dynamic } : {}) };
  return [
    { type: "tool-input-start", id: toolCallId, toolName, ...flags },
    { type: "tool-input-delta", id: toolCallId, delta: input },
    { type: "tool-input-end", id: toolCallId },
    item,
  ];
}

/** Parts as a whole response. */
export function resultOf(recorded: RecordedResponse): GenerateResult {
  if ("result" in recorded) return recorded.result;
  const content: Record<string, unknown>[] = [];
  const open = new Map<unknown, Record<string, unknown>>();
  let rest: Record<string, unknown> = {};
  let warnings: readonly unknown[] = [];
  let response: Record<string, unknown> = { modelId: recorded.modelId };
  for (const part of recorded.parts) {
    const { type } = part;
    if (type === "stream-start") warnings = part.warnings as unknown[];
    else if (type === "response-metadata") {
      const { type: _, ...metadata } = part;
      response = { ...response, ...metadata };
    } else if (type === "finish") {
      const { type: _, ...finish } = part;
      rest = finish;
    } else if (type === "text-start" || type === "reasoning-start") {
      const block = { type: type.slice(0, -"-start".length), text: "" };
      open.set(part.id, block);
      content.push(block);
    } else if (type === "text-delta" || type === "reasoning-delta") {
      const block = open.get(part.id);
      if (block !== undefined) block.text = `${block.text}${part.delta}`;
    } else if (type === "text-end" || type === "reasoning-end") {
      const block = open.get(part.id);
      if (block !== undefined && part.providerMetadata !== undefined)
        block.providerMetadata = part.providerMetadata;
    } else if (!type.startsWith("tool-input") && type !== "raw" && type !== "error")
      content.push({ ...part });
  }
  return { ...rest, content, warnings, response } as unknown as GenerateResult;
}

/** The calls in a response that are the client's to execute. */
export function callsOf(step: number, parts: readonly StreamPart[]): ResponseCall[] {
  return parts
    .filter((part) => part.type === "tool-call" && part.providerExecuted !== true)
    .map((part, call) => ({
      step,
      call,
      callId: String(part.toolCallId),
      tool: String(part.toolName),
      input: String(part.input),
    }));
}

/** Tokens of a response. Providers report fractions, NaN or nothing; a store needs non-negative integers. */
export function usageOf(recorded: RecordedResponse): Usage {
  const { inputTokens, outputTokens } = (resultOf(recorded).usage ?? {}) as Record<string, unknown>;
  return { inputTokens: tokens(inputTokens), outputTokens: tokens(outputTokens) };
}

function tokens(count: unknown): number {
  const total = typeof count === "object" && count !== null ? (count as { total?: unknown }).total : count;
  return typeof total === "number" && Number.isFinite(total) ? Math.max(0, Math.round(total)) : 0;
}

/** The parts or items of a response, whichever it has. */
export function itemsOf(recorded: RecordedResponse): readonly StreamPart[] {
  return "parts" in recorded ? recorded.parts : recorded.result.content;
}
