// The loop: phases one after another, and in each the same three questions until it is done. Are there calls without a
// result? Settle them. Has the model said its last word? The phase is over. Otherwise ask the model once more. A fresh
// run and a resumed one walk the same lines: what differs is only what the transcript already holds.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { thrownText } from "../model/thrown.ts";
import { danglingCalls, finalText, textOf, withCallIds } from "../model/transcript.ts";
import { type Phase, phasePrompt, type ToolSet } from "./agent.ts";
import { classOf, settleCalls } from "./effects.ts";
import { tellHost } from "./isolate-host.ts";
import { callModel } from "./model-step.ts";
import type { RunWork } from "./run-work.ts";
import { currentEntries, INPUT_PHASE, prepareEffect, type RunState, say } from "./state.ts";
import { orStopped, RunStopped, stopOf } from "./stop.ts";

/** Works until the run is done and returns its output. */
export async function workOff(work: RunWork): Promise<string> {
  const { agent, state } = work;
  const phases: readonly Phase[] = agent.phases ?? [{ name: "main", prompt: "" }];
  if (state.phase > phases.length || (agent.phases === undefined && state.phase > 0)) {
    throw new LazarusError(
      "RUN_AGENT_INVALID",
      `run ${state.info.runId} is in phase ${state.phase} and agent ${agent.id} has ${phases.length}: not the one that began it`,
      { hint: "resume it with the agent it was begun with, or fork it at step 0" },
    );
  }
  // Skipped by position, so that phases of equal names both run.
  for (let position = state.phase; position < phases.length; position += 1) {
    state.phase = position;
    const phase = phases[position]!;
    const ended = await workPhase(work, phase, agent.phases !== undefined);
    if (agent.phases === undefined) return ended.output;
    state.phases.push({ position, name: phase.name, ...ended });
    state.phase = position + 1;
    work.audit("phase", { position, name: phase.name, fellBack: ended.fellBack });
    if (position + 1 < phases.length) await work.save("throttled");
    crashPoint("run.phase.finished");
  }
  return state.phases.at(-1)?.output ?? "";
}

async function workPhase(
  work: RunWork,
  phase: Phase,
  phased: boolean,
): Promise<{ output: string; fellBack: boolean }> {
  try {
    if (phased) askPhase(work.state, phase);
    return { output: await converse(work, phase), fellBack: false };
  } catch (error) {
    const ownFailure =
      error instanceof LazarusError ? PHASE_FAILURES.has(error.code) : !(error instanceof RunStopped);
    if (phase.fallback === undefined || !ownFailure) throw error;
    work.warn(`phase ${phase.name} failed and its fallback stands in: ${thrownText(error)}`);
    return { output: phase.fallback, fellBack: true };
  }
}

/** What a phase can fail of by itself. A store, a budget or a question for a human is not the phase's own failure. */
const PHASE_FAILURES: ReadonlySet<string> = new Set([
  "RUN_MODEL_FAILED",
  "RUN_MODEL_ENDLESS",
  "RUN_STEPS_EXHAUSTED",
  "RUN_TIMEOUT",
]);

/** The phase's task, unless the transcript has it from before. */
function askPhase(state: RunState, phase: Phase): void {
  if (state.transcript.some((entry) => entry.phase === state.phase)) return;
  const input = state.transcript
    .filter((entry) => entry.phase === INPUT_PHASE)
    .map(({ message }) => textOf(message))
    .join("\n\n");
  say(state, { role: "user", content: phasePrompt(phase, { input, outputs: state.phases }) });
}

async function converse(work: RunWork, phase: Phase): Promise<string> {
  const { agent, state } = work;
  const tools = phase.tools ?? agent.tools ?? {};
  const limit = phase.maxIterations ?? state.info.maxIterations;
  for (;;) {
    if (work.signal.aborted) throw stopOf(work.signal.reason);
    const entries = currentEntries(state);
    const calls = danglingCalls(entries);
    if (calls.length > 0) {
      await settleCalls(work, tools, calls);
      await work.save("throttled");
      continue;
    }
    const final = finalText(entries);
    if (final !== undefined && work.nudges.length === 0) return final;
    const taken = entries.filter(({ message }) => message.role === "assistant").length;
    if (taken >= limit + work.extraSteps) {
      throw new LazarusError(
        "RUN_STEPS_EXHAUSTED",
        `phase ${phase.name} took its ${taken} steps without an answer`,
        {
          hint: "raise maxIterations, or give the phase a fallback",
        },
      );
    }
    await askModel(work, phase, tools);
  }
}

async function askModel(work: RunWork, phase: Phase, tools: ToolSet): Promise<void> {
  const { agent, state } = work;
  for (const nudge of work.nudges.splice(0)) {
    say(state, { role: "user", content: nudge });
    work.audit("nudge", { text: nudge });
  }
  const refused = await askBudget(work);
  if (refused !== undefined) {
    throw new LazarusError("RUN_BUDGET_SPENT", `run ${state.info.runId} may not go on: ${refused}`, {
      hint: "raise the budget, or wait until it rolls over",
    });
  }
  const startedMs = work.clock.monotonicMs();
  crashPoint("run.model.before");
  const answer = await callModel({
    model: agent.model ?? work.modelFor(phase.modelTier ?? state.info.modelTier ?? undefined),
    instructions: phase.instructions ?? agent.instructions,
    messages: currentEntries(state).map(({ message }) => message),
    tools,
    signal: work.signal,
    clock: work.clock,
    timeoutMs: work.stepTimeoutMs,
    maxRetries: work.maxRetries,
    stream: agent.stream ?? false,
    onActivity: () => work.watch?.activity(),
    onText: (text) => tell(work, text),
  });
  crashPoint("run.model.answered");
  state.step += 1;
  state.usage = {
    inputTokens: state.usage.inputTokens + answer.usage.inputTokens,
    outputTokens: state.usage.outputTokens + answer.usage.outputTokens,
  };
  for (const message of answer.messages) say(state, withCallIds(message, state.step));
  if (answer.messages.length === 0) say(state, { role: "assistant", content: "" });
  for (const call of danglingCalls(currentEntries(state))) {
    if (Object.hasOwn(tools, call.tool)) prepareEffect(state, call, classOf(tools[call.tool]!), work.nowMs());
  }
  work.watch?.stepDone(state.step);
  work.audit("step", { usage: answer.usage });
  await budgetStep(work, startedMs, answer.usage);
  // A last word goes out together with the ending: one write instead of two.
  if (finalText(currentEntries(state)) === undefined) await work.save("throttled");
}

/** A listener that throws is told nothing more; the run goes on. */
function tell(work: RunWork, text: string): void {
  if (work.deaf) return;
  tellHost(
    () => work.ports.onText?.(work.state.info, text),
    (error) => {
      if (!work.deaf) work.warn(`onText threw and is not called again: ${thrownText(error)}`);
      work.deaf = true;
    },
  );
}

/** Why the caller may not go on. A budget that cannot be asked ends the run; one that never answers is left at a stop. */
async function askBudget({ ports, state, signal }: RunWork): Promise<string | undefined> {
  try {
    return await orStopped(Promise.resolve(ports.budget?.check(state.info)), signal);
  } catch (error) {
    if (error instanceof RunStopped) throw error;
    throw new LazarusError(
      "INTERNAL",
      `run ${state.info.runId}: its budget cannot be asked: ${thrownText(error)}`,
      { hint: `lazarus runs show ${state.info.runId}`, cause: error },
    );
  }
}

async function budgetStep(work: RunWork, startedMs: number, usage: RunState["usage"]): Promise<void> {
  try {
    const runtimeMs = work.clock.monotonicMs() - startedMs;
    const written = work.ports.budget?.commit(work.state.info, { runtimeMs, usage });
    await orStopped(Promise.resolve(written), work.signal);
  } catch (error) {
    work.warn(`the budget was not written: ${thrownText(error)}`);
  }
}
