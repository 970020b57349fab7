// A model for the two versions of the app, so that they run without a key: it looks for a customer, then sends a mail.
import { MockLanguageModelV4 } from "ai/test";

const STEPS = [
  { toolName: "find", input: { name: "Ada" } },
  { toolName: "send", input: { to: "ada@example.org", text: "Your parcel is on its way." } },
];

export const model = new MockLanguageModelV4({
  doGenerate: async ({ prompt }) => {
    const step = STEPS[prompt.filter(({ role }) => role === "assistant").length];
    return {
      content:
        step === undefined
          ? [{ type: "text", text: "Ada has been told." }]
          : [{ type: "tool-call", toolCallId: step.toolName, ...step, input: JSON.stringify(step.input) }],
      finishReason: { unified: step === undefined ? "stop" : "tool-calls", raw: undefined },
      usage: {
        inputTokens: { total: 10, noCache: 10, cacheRead: 0, cacheWrite: 0 },
        outputTokens: { total: 5, text: 5, reasoning: 0 },
      },
      warnings: [],
    };
  },
});
