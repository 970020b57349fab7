// Creates the state of a new run: its id, its info, and the input as its first messages. No I/O.
import { LazarusError } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import { createRunId, isRunId } from "../model/run-id.ts";
import { textOf } from "../model/transcript.ts";
import type { RunInfo } from "../model/types.ts";
import { type Agent, inputMessages, isStepLimit, type RunInput } from "./agent.ts";
import type { ExecutorDefaults, RunOptions } from "./options.ts";
import { createState, INPUT_PHASE, type RunState } from "./state.ts";

const DEFAULT_ITERATIONS = 50;
const PROMPT_LENGTH = 200;

/** Throws for a mistake in the call: no input, or an invalid run id. The agent itself is checked later. */
export function createRunState(
  machine: Machine,
  agent: Agent,
  input: RunInput | undefined,
  run: RunOptions,
  defaults: ExecutorDefaults,
): RunState {
  if (input === undefined) {
    throw new LazarusError("USAGE", "a new run needs an input", {
      hint: 'executor.run(agent, "what to do")',
    });
  }
  if (run.runId !== undefined && !isRunId(run.runId)) {
    throw new LazarusError("RUN_ID_INVALID", `${JSON.stringify(run.runId)} is not a run id`, {
      hint: "use 1 to 128 letters, digits, '_' or '-', or leave it out",
    });
  }
  const limit = run.maxIterations ?? defaults.maxIterations;
  if (!isStepLimit(limit)) {
    throw new LazarusError("USAGE", `maxIterations is ${String(limit)}`, {
      hint: "use a positive integer, or leave it out",
    });
  }
  const messages = inputMessages(input);
  const nowMs = Math.floor(machine.clock.nowMs());
  const info: RunInfo = {
    runId: run.runId ?? createRunId(machine, nowMs),
    agentId: String(agent?.id ?? ""),
    agentName: agent?.name ?? String(agent?.id ?? ""),
    callerId: run.callerId ?? null,
    channelId: run.channelId ?? null,
    guildId: run.guildId ?? null,
    parentRunId: run.parentRunId ?? null,
    prompt: excerpt(messages.map(textOf).find((text) => text !== "") ?? ""),
    modelTier: run.modelTier ?? agent?.modelTier ?? null,
    inputs: run.inputs ?? null,
    startedAtMs: nowMs,
    maxIterations: run.maxIterations ?? agent?.maxIterations ?? defaults.maxIterations ?? DEFAULT_ITERATIONS,
  };
  const phase = agent?.phases === undefined ? 0 : INPUT_PHASE;
  return createState(
    info,
    messages.map((message) => ({ step: 0, phase, message })),
  );
}

/** Cuts at a word boundary: the redaction rules would not recognize half a secret. */
function excerpt(text: string): string {
  if (text.length <= PROMPT_LENGTH) return text;
  return /\s/.test(text[PROMPT_LENGTH]!)
    ? text.slice(0, PROMPT_LENGTH)
    : text.slice(0, PROMPT_LENGTH).replace(/\S+$/, "");
}
