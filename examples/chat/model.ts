// Stands in for a provider: a script that streams a few letters at a time, so that a kill hits the middle of a word.
import type { LanguageModel } from "ai";
import { MockLanguageModelV4 } from "ai/test";

const ANSWERS = [
  "Certainly. I have written a short note to Bob that explains why the delivery is late. May I send it?",
  "Done. Bob has been told, and nothing else was sent to anybody.",
] as const;
const MAIL = JSON.stringify({ to: "bob@example.com", text: "The delivery is late." });
const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

/** Waits for `pause()` before each fragment. */
export function createSlowModel(pause: () => Promise<unknown>): LanguageModel {
  return new MockLanguageModelV4({
    provider: "script",
    modelId: "slow",
    doStream: async ({ prompt }) => {
      // Each turn of the conversation begins with the request and ends with the answer after the mail.
      const { length } = prompt.slice(prompt.findLastIndex(({ role }) => role === "user"));
      return { stream: ReadableStream.from(partsOf(length === 1 ? 0 : 1, pause)) as never };
    },
  });
}

async function* partsOf(position: 0 | 1, pause: () => Promise<unknown>) {
  yield { type: "stream-start", warnings: [] };
  yield { type: "text-start", id: "text" };
  for (const delta of ANSWERS[position].match(/.{1,5}/g)!) {
    await pause();
    yield { type: "text-delta", id: "text", delta };
  }
  yield { type: "text-end", id: "text" };
  if (position === 0) {
    yield { type: "tool-call", toolCallId: "send-1", toolName: "send", input: MAIL };
  }
  const unified = position === 0 ? "tool-calls" : "stop";
  yield { type: "finish", finishReason: { unified, raw: unified }, usage: USAGE };
}
