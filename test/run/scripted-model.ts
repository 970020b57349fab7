// A scripted model that picks its line by the number of its answers in the prompt, so that a restarted process gets the
// next line, as with a real model.
import { MockLanguageModelV4 } from "ai/test";

export type Line =
  | string
  | { readonly calls: readonly { readonly tool: string; readonly input: unknown; readonly id?: string }[] }
  | { readonly raw: readonly object[] }
  | (() => Promise<string> | string);

export interface ScriptedModel extends MockLanguageModelV4 {
  /** How many times the model was called. */
  readonly asked: number;
}

const FINISH = (unified: string) => ({ unified, raw: undefined });
const USAGE = {
  inputTokens: { total: 10, noCache: 10, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: 5, text: 5, reasoning: undefined },
};

export function createScriptedModel(script: readonly Line[]): ScriptedModel {
  const model = new MockLanguageModelV4({
    doGenerate: (async ({ prompt }: { prompt: { role: string }[] }) => {
      const position = prompt.filter(({ role }) => role === "assistant").length;
      const line = script[position];
      if (line === undefined) throw new Error(`the script ends before line ${position}`);
      const content = await contentOf(line, position);
      const calls = content.some((part) => "type" in part && part.type === "tool-call");
      return { content, finishReason: FINISH(calls ? "tool-calls" : "stop"), usage: USAGE, warnings: [] };
    }) as never,
  });
  return Object.defineProperty(model, "asked", { get: () => model.doGenerateCalls.length }) as ScriptedModel;
}

async function contentOf(line: Line, position: number): Promise<readonly object[]> {
  if (typeof line === "string") return [{ type: "text", text: line }];
  if (typeof line === "function") return [{ type: "text", text: await line() }];
  if ("raw" in line) return line.raw;
  return line.calls.map(({ tool, input, id }, i) => ({
    type: "tool-call",
    toolCallId: id ?? `call-${position}-${i}`,
    toolName: tool,
    input: typeof input === "string" ? input : JSON.stringify(input),
  }));
}
