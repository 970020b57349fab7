// Cases of `durableCall`, for options that generateText and streamText have and agents have not.
import { MockLanguageModelV4, simulateReadableStream } from "ai/test";
import { add, type Case } from "./cases.ts";
import { type Content, call, USAGE } from "./models.ts";

const START = { type: "stream-start", warnings: [] };
const METADATA = { type: "response-metadata", id: "m1", timestamp: new Date(1000), modelId: "streams-v1" };
const STOP = { type: "finish", finishReason: { unified: "stop", raw: "stop" }, usage: USAGE };
const text = (words: string): Content[] => [
  { type: "text-start", id: "t" },
  { type: "text-delta", id: "t", delta: words },
  { type: "text-end", id: "t" },
];

/** A model whose first streams are these, and whose last one is repeated. */
function streams(...lines: readonly (readonly Content[])[]) {
  let asked = 0;
  return new MockLanguageModelV4({
    provider: "mock",
    modelId: "streams",
    doStream: async () =>
      ({
        stream: simulateReadableStream({
          ...{ initialDelayInMs: null, chunkDelayInMs: null },
          chunks: [START, METADATA, ...lines[Math.min(asked++, lines.length - 1)]!],
        }),
      }) as never,
  });
}

const noted = (names: readonly string[]) => (note: (event: string, data?: unknown) => void) =>
  Object.fromEntries(names.map((name) => [name, (event: unknown) => note(name, event)]));

export const CALL_CASES: Readonly<Record<string, Case>> = {
  "a history and system instructions": {
    lines: ["hello"],
    settings: () => ({ system: "be brief" }),
    call: () => ({ prompt: undefined, messages: [{ role: "user", content: "hi" }] }),
  },
  "deprecated callbacks of a call": {
    lines: [[call("add", { a: 1, b: 2 })], "three"],
    settings: () => ({ tools: { add } }),
    call: noted([
      ...["experimental_onLanguageModelCallStart", "experimental_onLanguageModelCallEnd"],
      ...["experimental_onToolCallStart", "experimental_onToolCallFinish"],
    ]),
  },
  "deprecated include": {
    lines: ["hello"],
    settings: () => ({ experimental_include: { requestBody: true, responseBody: true } }),
  },
  chunks: {
    lines: [[call("add", { a: 1, b: 2 })], "three"],
    settings: () => ({ tools: { add } }),
    call: noted(["onChunk"]),
    streamOnly: true,
  },
  "raw chunks": {
    lines: [],
    settings: () => ({
      model: streams([{ type: "raw", rawValue: { a: 1 } }, ...text("raw"), STOP]),
      includeRawChunks: true,
    }),
    streamOnly: true,
  },
  "parts that few providers send": {
    lines: [
      [
        { type: "custom", kind: "mock.note", providerMetadata: { mock: { a: 1 } } },
        { type: "reasoning-file", mediaType: "image/png", data: { type: "data", data: "aGVsbG8=" } },
        { type: "text", text: "done" },
      ],
    ],
  },
  "a stream with pings": {
    lines: [],
    settings: () => ({ model: streams([{ type: "ping" }, ...text("alive"), STOP]) }),
    streamOnly: true,
  },
  "a stream that breaks and is retried": {
    lines: [],
    settings: () => ({
      tools: { add },
      streamRetries: 1,
      model: streams(
        [...text("half"), { type: "error", error: new Error("broken") }],
        [...text("whole"), STOP],
      ),
    }),
    streamOnly: true,
  },
  "a stream that breaks after a call and is retried": {
    lines: [],
    settings: () => ({
      tools: { add },
      streamRetries: 1,
      model: streams(
        [call("add", { a: 1, b: 2 }, "lost"), { type: "error", error: new Error("broken") }],
        [...text("whole"), STOP],
      ),
    }),
    streamOnly: true,
  },
};

/** Where each of them is compared. */
export const CALL_FEATURES: Readonly<Record<string, string>> = {
  experimental_include: "deprecated include",
  experimental_onLanguageModelCallEnd: "deprecated callbacks of a call",
  experimental_onLanguageModelCallStart: "deprecated callbacks of a call",
  experimental_onToolCallFinish: "deprecated callbacks of a call",
  experimental_onToolCallStart: "deprecated callbacks of a call",
  experimental_sandbox: "a sandbox",
  experimental_transform: "transformed stream",
  generateCallId: "private",
  generateId: "private",
  includeRawChunks: "raw chunks",
  messages: "a history and system instructions",
  now: "private",
  onChunk: "chunks",
  prompt: "a tool",
  retention: "private",
  streamRetries: "a stream that breaks and is retried",
  system: "a history and system instructions",
};
