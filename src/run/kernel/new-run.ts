// Creates the info of a new run and its input as messages. No I/O.
import type { ModelMessage } from "ai";
import { LazarusError } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import type { Child } from "../engine/child.ts";
import { excerpt, textOf } from "../log/read.ts";
import { createRunId, invalidRunId, isRunId } from "../model/run-id.ts";
import type { RunInfo } from "../model/types.ts";
import { type Agent, inputMessages, isStepLimit, type RunInput } from "./agent.ts";
import type { ExecutorDefaults, RunOptions } from "./options.ts";

const DEFAULT_ITERATIONS = 50;

/** Throws for a mistake in the call: no input, or an invalid run id. The agent itself is checked later. */
export function createRun(
  machine: Machine,
  agent: Agent,
  input: RunInput | undefined,
  { child, ...run }: RunOptions & { readonly child?: Child | undefined },
  defaults: ExecutorDefaults,
): { info: RunInfo; messages: ModelMessage[] } {
  if (input === undefined) {
    throw new LazarusError("USAGE", "a new run needs an input", {
      hint: 'executor.run(agent, "what to do")',
    });
  }
  if (run.runId !== undefined && !isRunId(run.runId)) {
    throw invalidRunId(run.runId);
  }
  const limit = run.maxIterations ?? defaults.maxIterations;
  if (!isStepLimit(limit)) {
    throw new LazarusError("USAGE", `maxIterations is ${String(limit)}`, {
      hint: "use a positive integer, or omit it",
    });
  }
  const messages = inputMessages(input);
  const nowMs = Math.floor(machine.clock.nowMs());
  const info: RunInfo = {
    runId: run.runId ?? child?.id ?? createRunId(machine, nowMs),
    agentId: String(agent?.id ?? ""),
    agentName: agent?.name ?? String(agent?.id ?? ""),
    callerId: run.callerId ?? null,
    channelId: run.channelId ?? null,
    guildId: run.guildId ?? null,
    parentRunId: run.parentRunId ?? child?.parent.run.id ?? null,
    prompt: excerpt(messages.map(textOf).find((text) => text !== "") ?? ""),
    modelTier: run.modelTier ?? agent?.modelTier ?? null,
    inputs: run.inputs ?? null,
    startedAtMs: nowMs,
    maxIterations: run.maxIterations ?? agent?.maxIterations ?? defaults.maxIterations ?? DEFAULT_ITERATIONS,
  };
  return { info, messages };
}
