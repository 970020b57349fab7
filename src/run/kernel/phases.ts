// The loop: phases in sequence. Within a phase, it repeats until the phase has its answer: calls without a result are
// executed; an answer without calls ends the phase; otherwise the model is called again. A new run and a resumed one
// take the same path; they differ only in what the transcript already holds.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { orStopped, RunStopped, stopOf } from "../model/stop.ts";
import { thrownText } from "../model/thrown.ts";
import { danglingCalls, finalText, textOf, withCallIds } from "../model/transcript.ts";
import { type Phase, phasePrompt, type ToolSet } from "./agent.ts";
import { executeCalls, prepareCalls } from "./effects.ts";
import { callListener } from "./isolate-host.ts";
import { callModel } from "./model-step.ts";
import { type RunContext, saveThrottled } from "./run-context.ts";
import { appendMessage, currentEntries, INPUT_PHASE, type RunState } from "./state.ts";

/** Runs all phases that are left and returns the output of the run. */
export async function runPhases(run: RunContext): Promise<string> {
  const { agent, state } = run;
  const phases: readonly Phase[] = agent.phases ?? [{ name: "main", prompt: "" }];
  if (state.phase > phases.length || (agent.phases === undefined && state.phase > 0)) {
    throw new LazarusError(
      "RUN_AGENT_INVALID",
      `run ${state.info.runId} is in phase ${state.phase}, but agent ${agent.id} has ${phases.length} phases: it is not the agent that began the run`,
      { hint: "resume it with the agent it was begun with, or fork it at step 0" },
    );
  }
  // Completed phases are skipped by position, so that two phases of the same name both run.
  for (let position = state.phase; position < phases.length; position += 1) {
    state.phase = position;
    const phase = phases[position]!;
    const result = await runPhase(run, phase, agent.phases !== undefined);
    if (agent.phases === undefined) return result.output;
    state.phases.push({ position, name: phase.name, ...result });
    state.phase = position + 1;
    run.audit("phase", { position, name: phase.name, fellBack: result.fellBack });
    if (position + 1 < phases.length) await saveThrottled(run);
    crashPoint("run.phase.finished");
  }
  return state.phases.at(-1)?.output ?? "";
}

async function runPhase(
  run: RunContext,
  phase: Phase,
  phased: boolean,
): Promise<{ output: string; fellBack: boolean }> {
  try {
    if (phased) appendPrompt(run.state, phase);
    return { output: await runConversation(run, phase), fellBack: false };
  } catch (error) {
    const isPhaseFailure =
      error instanceof LazarusError ? PHASE_FAILURES.has(error.code) : !(error instanceof RunStopped);
    if (phase.fallback === undefined || !isPhaseFailure) throw error;
    run.warn(`phase ${phase.name} failed and its fallback is used: ${thrownText(error)}`);
    return { output: phase.fallback, fellBack: true };
  }
}

/** Errors of the phase itself. A failing store, a spent budget or a question for a human is not answered by a fallback. */
const PHASE_FAILURES: ReadonlySet<string> = new Set([
  "RUN_MODEL_FAILED",
  "RUN_MODEL_ENDLESS",
  "RUN_STEPS_EXHAUSTED",
  "RUN_TIMEOUT",
]);

/** Appends the phase's prompt, unless the transcript of a resumed run has it already. */
function appendPrompt(state: RunState, phase: Phase): void {
  if (state.transcript.some((entry) => entry.phase === state.phase)) return;
  const input = state.transcript
    .filter((entry) => entry.phase === INPUT_PHASE)
    .map(({ message }) => textOf(message))
    .join("\n\n");
  appendMessage(state, { role: "user", content: phasePrompt(phase, { input, outputs: state.phases }) });
}

async function runConversation(run: RunContext, phase: Phase): Promise<string> {
  const { agent, state } = run;
  const tools = phase.tools ?? agent.tools ?? {};
  const limit = phase.maxIterations ?? state.info.maxIterations;
  for (;;) {
    const entries = currentEntries(state);
    const calls = danglingCalls(entries);
    // Before the stop: a call that is saved without its ledger entry would not be marked as redacted.
    await prepareCalls(run, tools, calls);
    if (run.signal.aborted) throw stopOf(run.signal.reason);
    if (calls.length > 0) {
      await executeCalls(run, tools, calls);
      continue;
    }
    // An answer in the caller's own history is not an answer to it.
    const final = (entries.at(-1)?.step ?? 0) > 0 ? finalText(entries) : undefined;
    if (final !== undefined && run.nudges.length === 0) return final;
    const steps = entries.filter(({ message }) => message.role === "assistant").length;
    if (steps >= limit + run.extraSteps) {
      throw new LazarusError(
        "RUN_STEPS_EXHAUSTED",
        `phase ${phase.name} used its ${steps} steps without an answer`,
        { hint: "raise maxIterations, or give the phase a fallback" },
      );
    }
    await runModelStep(run, phase, tools);
  }
}

async function runModelStep(run: RunContext, phase: Phase, tools: ToolSet): Promise<void> {
  const { agent, state } = run;
  for (const nudge of run.nudges.splice(0)) {
    appendMessage(state, { role: "user", content: nudge });
    run.audit("nudge", { text: nudge });
  }
  await checkBudget(run);
  const startedMs = run.clock.monotonicMs();
  crashPoint("run.model.before");
  const answer = await callModel({
    model: agent.model ?? run.modelFor(phase.modelTier ?? state.info.modelTier ?? undefined),
    instructions: phase.instructions ?? agent.instructions,
    messages: currentEntries(state).map(({ message }) => message),
    tools,
    signal: run.signal,
    clock: run.clock,
    timeoutMs: run.stepTimeoutMs,
    maxRetries: run.maxRetries,
    stream: agent.stream ?? false,
    onActivity: () => run.watch?.activity(),
    onText: (text) => emitText(run, text),
  });
  crashPoint("run.model.answered");
  state.step += 1;
  state.usage = {
    inputTokens: state.usage.inputTokens + answer.usage.inputTokens,
    outputTokens: state.usage.outputTokens + answer.usage.outputTokens,
  };
  for (const message of answer.messages) appendMessage(state, withCallIds(message, state.step));
  if (answer.messages.length === 0) appendMessage(state, { role: "assistant", content: "" });
  run.watch?.stepDone(state.step);
  run.audit("step", { usage: answer.usage });
  await commitToBudget(run, run.clock.monotonicMs() - startedMs, answer.usage);
  // One write instead of two: `executeCalls` saves calls together with their ledger entries, and a final answer is
  // saved with the end of the phase or run.
  const entries = currentEntries(state);
  if (danglingCalls(entries).length === 0 && finalText(entries) === undefined) await saveThrottled(run);
}

/** Passes streamed text to the host. A listener that throws is not called again; the run continues. */
function emitText(run: RunContext, text: string): void {
  if (run.textListenerFailed) return;
  callListener(
    () => run.ports.onText?.(run.state.info, text),
    (error) => {
      if (!run.textListenerFailed) run.warn(`onText threw and is not called again: ${thrownText(error)}`);
      run.textListenerFailed = true;
    },
  );
}

/** Throws when the caller's budget is spent or cannot be read. A budget that never answers does not delay a stop. */
async function checkBudget({ ports, state, signal }: RunContext): Promise<void> {
  const { runId } = state.info;
  let refusal: string | undefined;
  try {
    refusal = await orStopped(Promise.resolve(ports.budget?.check(state.info)), signal);
  } catch (error) {
    if (error instanceof RunStopped) throw error;
    throw new LazarusError("INTERNAL", `run ${runId}: the budget check failed: ${thrownText(error)}`, {
      hint: `lazarus runs show ${runId}`,
      cause: error,
    });
  }
  if (refusal === undefined) return;
  throw new LazarusError("RUN_BUDGET_SPENT", `run ${runId} has no budget left: ${refusal}`, {
    hint: "raise the budget, or wait until it rolls over",
  });
}

async function commitToBudget(run: RunContext, runtimeMs: number, usage: RunState["usage"]): Promise<void> {
  try {
    const written = run.ports.budget?.commit(run.state.info, { runtimeMs, usage });
    await orStopped(Promise.resolve(written), run.signal);
  } catch (error) {
    run.warn(`the budget was not updated: ${thrownText(error)}`);
  }
}
