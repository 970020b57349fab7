// A model without key or network, for tests and demos. It picks its line of the script by the number of its earlier answers
// in the conversation, so that a resumed run gets the same line as an uninterrupted one.
import type { LanguageModel } from "ai";

/** A string is a final answer; anything else is one tool call. */
export type ScriptLine = string | { readonly tool: string; readonly input: object };

type Model = Exclude<LanguageModel, string>;
type Generate = Extract<Model, { specificationVersion: "v4" }>["doGenerate"];

/** Creates a model that answers from a script, without network or key. */
export function createScriptedModel(lines: readonly ScriptLine[]): LanguageModel {
  const doGenerate: Generate = async ({ prompt }) => {
    const position = prompt.filter(({ role }) => role === "assistant").length;
    const line = lines[Math.min(position, lines.length - 1)] ?? "";
    const content =
      typeof line === "string"
        ? ({ type: "text", text: line } as const)
        : ({
            type: "tool-call",
            toolCallId: `call-${position}`,
            toolName: line.tool,
            input: JSON.stringify(line.input),
          } as const);
    const unified = typeof line === "string" ? ("stop" as const) : ("tool-calls" as const);
    return { content: [content], finishReason: { unified, raw: undefined }, usage: USAGE, warnings: [] };
  };
  return {
    specificationVersion: "v4",
    provider: "lazarus",
    modelId: "scripted",
    supportedUrls: {},
    doGenerate,
    doStream: () => Promise.reject(new Error("the scripted model does not stream")),
  };
}

const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};
