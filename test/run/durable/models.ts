// Models for tests of durable agents: a script of responses, answered as a whole or as a stream, with every prompt kept.
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";

export type Content = Record<string, unknown> & { type: string };
/** A string is a final answer; a list is the content of a response; `{ type: "cut", reason }` sets its finish reason. */
export type Line = string | readonly Content[] | Error | ((prompt: unknown) => string | readonly Content[]);

export const USAGE = {
  inputTokens: { total: 10, noCache: 8, cacheRead: 2, cacheWrite: undefined },
  outputTokens: { total: 5, text: 4, reasoning: 1 },
};

export function call(toolName: string, input: unknown, toolCallId = `${toolName}-id`): Content {
  return { type: "tool-call", toolCallId, toolName, input: JSON.stringify(input) };
}

export interface ScriptedModel extends MockLanguageModelV4 {
  /** The prompt of each call, as data. */
  readonly asked: Record<string, unknown>[];
}

/** Answers with line n of its script to a prompt that has n of its answers. */
export function script(lines: readonly Line[], modelId = "script"): ScriptedModel {
  const asked: Record<string, unknown>[] = [];
  const failed = new Set<number>();
  const answer = (options: { prompt: readonly { role: string }[]; abortSignal?: AbortSignal }) => {
    const { abortSignal: _, ...kept } = options;
    asked.push(structuredClone(kept) as Record<string, unknown>);
    const position = options.prompt.filter(({ role }) => role === "assistant").length;
    let line = lines[Math.min(position, lines.length - 1)]!;
    if (line instanceof Error) {
      if (!failed.has(position)) {
        failed.add(position);
        throw line;
      }
      line = "recovered";
    }
    if (typeof line === "function") line = line(options.prompt);
    const listed: readonly Content[] = typeof line === "string" ? [{ type: "text", text: line }] : line;
    const cut = listed.find(({ type }) => type === "cut");
    const content = listed.filter((item) => item !== cut);
    const calls = content.some(({ type }) => type === "tool-call");
    const unified = cut === undefined ? (calls ? "tool-calls" : "stop") : String(cut.reason);
    return {
      content,
      finishReason: { unified, raw: `raw-${unified}` },
      usage: USAGE,
      warnings: [],
      providerMetadata: { mock: { position } },
      request: { body: { position }, url: "https://model.example/v1/chat" },
      response: {
        id: `response-${position}`,
        timestamp: new Date(1000 * position),
        modelId: `${modelId}-v1`,
        headers: { n: `${position}` },
      },
    };
  };
  const model = new MockLanguageModelV4({
    provider: "mock",
    modelId,
    doGenerate: async (options) => answer(options) as never,
    doStream: async (options) => {
      const { content, finishReason, usage, warnings, providerMetadata, request, response } = answer(options);
      const { headers, ...metadata } = response;
      return {
        stream: simulateReadableStream({
          initialDelayInMs: null,
          chunkDelayInMs: null,
          chunks: [
            { type: "stream-start", warnings },
            { type: "response-metadata", ...metadata },
            ...content.flatMap(partsOf),
            { type: "finish", finishReason, usage, providerMetadata },
          ],
        }),
        request,
        response: { headers },
      } as never;
    },
  });
  return Object.assign(model, { asked });
}

/** A model whose stream ends in silence after parts of these types. */
export function stalled(types: readonly string[]): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    provider: "mock",
    modelId: "stalled",
    doStream: async ({ abortSignal }) =>
      ({
        stream: new ReadableStream({
          start(controller) {
            controller.enqueue({ type: "stream-start", warnings: [] });
            for (const type of types) controller.enqueue({ type, id: "t", delta: "a" });
            abortSignal?.addEventListener("abort", () => controller.error(abortSignal.reason), {
              once: true,
            });
          },
        }),
      }) as never,
  });
}

function partsOf(item: Content, i: number): Content[] {
  const id = `part-${i}`;
  if (item.type === "text" || item.type === "reasoning") {
    const text = String(item.text);
    const half = Math.ceil(text.length / 2);
    return [
      { type: `${item.type}-start`, id },
      { type: `${item.type}-delta`, id, delta: text.slice(0, half) },
      { type: `${item.type}-delta`, id, delta: text.slice(half) },
      { type: `${item.type}-end`, id },
    ];
  }
  if (item.type !== "tool-call") return [item];
  const { toolCallId, toolName, input } = item;
  return [
    { type: "tool-input-start", id: toolCallId, toolName },
    { type: "tool-input-delta", id: toolCallId, delta: input },
    { type: "tool-input-end", id: toolCallId },
    item,
  ];
}
