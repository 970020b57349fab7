// A model that needs no key and no network: it answers by how many answers it can see, as a script. Put a real one in
// its place, for example `anthropic("claude-sonnet-4-5")` of @ai-sdk/anthropic; nothing else changes.
import { MockLanguageModelV4 } from "ai/test";

type Line = string | { readonly tool: string; readonly input: object };

const usage = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

export function pretendModel(lines: readonly Line[]): MockLanguageModelV4 {
  return new MockLanguageModelV4({
    doGenerate: async ({ prompt }) => {
      const position = prompt.filter(({ role }) => role === "assistant").length;
      const line = lines[Math.min(position, lines.length - 1)]!;
      const content =
        typeof line === "string"
          ? { type: "text" as const, text: line }
          : {
              type: "tool-call" as const,
              toolCallId: `call-${position}`,
              toolName: line.tool,
              input: JSON.stringify(line.input),
            };
      const unified = typeof line === "string" ? ("stop" as const) : ("tool-calls" as const);
      return { content: [content], finishReason: { unified, raw: undefined }, usage, warnings: [] };
    },
  });
}
