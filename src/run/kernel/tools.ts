// The tools of an executor as tools of the AI SDK, and how their calls may be repeated. The SDK calls them through the ledger
// of the engine; their results and errors are converted to what a record can hold.
import { type ToolSet as SdkTools, tool as sdkTool } from "ai";
import type { RunningEffect } from "../engine/ledger.ts";
import { asJson, copyOf } from "../engine/plain-data.ts";
import { currentEffect } from "../engine/scope.ts";
import type { EffectRule } from "../engine/tools.ts";
import { thrownText } from "../model/thrown.ts";
import type { DurableTool, ToolContext, ToolSet } from "./agent.ts";
import type { RunContext } from "./run-context.ts";

/** Tools for the SDK. */
export function sdkTools(context: RunContext, tools: ToolSet): SdkTools {
  return Object.fromEntries(
    Object.entries(tools).map(([name, { description, inputSchema, execute, needsApproval }]) => [
      name,
      sdkTool({
        ...(description === undefined ? {} : { description }),
        ...(needsApproval === undefined ? {} : { needsApproval }),
        inputSchema,
        execute: (input: unknown) => resultOf(() => execute(input, toolContext(context, currentEffect()!))),
      } as never),
    ]),
  ) as SdkTools;
}

/** How calls of each tool may be repeated. */
export function effectRules(context: RunContext, tools: ToolSet): Record<string, EffectRule> {
  return Object.fromEntries(Object.entries(tools).map(([name, tool]) => [name, ruleOf(context, tool)]));
}

function ruleOf(context: RunContext, { effect = "once", reconcile }: DurableTool): EffectRule {
  if (effect !== "reconcile") return effect;
  return {
    reconcile: (id: string, input: unknown, running?: RunningEffect) =>
      reconcile!(id, copyOf(input), toolContext(context, running!)),
  };
}

function toolContext({ info, run }: RunContext, { id, attempt, step }: RunningEffect): ToolContext {
  return { effectId: id, attempt, step, info, signal: run.stop.signal };
}

/** What the call returned, as JSON, so that the model sees the same before and after a resume. */
async function resultOf(call: () => unknown): Promise<unknown> {
  try {
    return asJson(await lastOf(await call()));
  } catch (error) {
    if (error instanceof Error && hasText(error)) throw error;
    throw new Error(thrownText(error, "the tool"));
  }
}

function hasText(error: Error): boolean {
  try {
    return String(error.message) !== "";
  } catch {
    return false;
  }
}

/** The last value of a generator, whose body runs only when it is read; any other output unchanged. */
async function lastOf(output: unknown): Promise<unknown> {
  if (typeof output !== "object" || output === null || !(Symbol.asyncIterator in output)) return output;
  let last: unknown;
  for await (const value of output as AsyncIterable<unknown>) last = value;
  return last;
}
