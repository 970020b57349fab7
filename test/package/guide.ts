// What the examples in docs/runs.md leave out, as declarations for the test that compiles them.

/** Names that they use, by file. */
export const GUIDE: Readonly<Record<string, string>> = {
  "guide.d.ts": `
import type { LanguageModel, Tool } from "ai";
import type { Hono } from "hono";
import type { DurableAgent, Journal } from "lazarus/run";
declare global {
  const ToolLoopAgent: typeof import("ai").ToolLoopAgent;
  const createAgentUIStreamResponse: typeof import("ai").createAgentUIStreamResponse;
  const createRunStore: typeof import("lazarus/run").createRunStore;
  const model: LanguageModel;
  const find: Tool<{ name: string }, string>;
  const send: Tool<{ to: string }, string>;
  const stopWhen: ReturnType<typeof import("ai").isStepCount>;
  const output: ReturnType<typeof import("ai").Output.text>;
  const smtp: { send(mail: { to: string; text: string; messageId: string }): Promise<string> };
  const app: Hono;
  const agent: DurableAgent;
  const openMyJournal: () => Promise<Journal>;
}`,
  // Packages that are not installed with Lazarus.
  "guide-modules.d.ts": `
declare module "@ai-sdk/anthropic" {
  export function anthropic(id: string): import("ai").LanguageModel;
}
declare module "vitest" {
  export const describe: (name: string, work: () => void) => void;
  export const test: (name: string, work: () => Promise<void>) => void;
}`,
};
