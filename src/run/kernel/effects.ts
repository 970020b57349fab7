// Executes tool calls through the ledger (INV-5). Write order matters: `prepared` is durable before `started`, `started`
// before the tool is called, and the result before the model sees it. What to do with an interrupted call is decided
// in model/ledger.ts.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { advanceEffect, type CallVerdict, effectId, inputDigest, verdictOnCall } from "../model/ledger.ts";
import { orStopped, stopOf } from "../model/stop.ts";
import { thrownText } from "../model/thrown.ts";
import { type DanglingCall, resultMessage, type ToolOutcome } from "../model/transcript.ts";
import type { Effect, EffectClass } from "../model/types.ts";
import { type DurableTool, type ToolContext, type ToolSet, UnknownOutcomeError } from "./agent.ts";
import { type RunContext, saveNow, saveThrottled, timeOf } from "./run-context.ts";
import { appendMessage, prepareEffect, putEffect } from "./state.ts";

/** How often a call whose outcome stays unknown is started within one process. */
const MAX_ATTEMPTS = 3;

/**
 * Enters calls in the ledger as prepared, to be written with the next save, or as the effect history of the mission knows
 * them: the ledger may have gone back with the cell. Calls of unknown tools get no entry.
 */
export async function prepareCalls(
  run: RunContext,
  tools: ToolSet,
  calls: readonly DanglingCall[],
): Promise<void> {
  for (const call of calls) {
    const tool = toolOf(tools, call);
    if (tool !== undefined) prepareEffect(run.state, call, classOf(tool), timeOf(run));
    const entry = entryOf(run, call);
    if (entry === undefined || entry.class === "read" || entry.state === "done" || entry.state === "failed")
      continue;
    const asked = { ...entry, inputDigest: inputDigest(call.input) };
    const known = (await run.checkpointer?.recall?.(asked)) ?? asked;
    if (known.state === entry.state) run.state.effects.set(entry.id, known);
    else putEffect(run.state, known);
  }
}

/** Gives every prepared call a result. Throws RUN_NEEDS_HUMAN for an unknown outcome and RunStopped on a stop. */
export async function executeCalls(
  run: RunContext,
  tools: ToolSet,
  calls: readonly DanglingCall[],
): Promise<void> {
  parkUnknown(run, tools, calls);
  const isRead = (call: DanglingCall) => {
    const tool = toolOf(tools, call);
    return tool !== undefined && classOf(tool) === "read";
  };
  // An effect may only start from a durable record; reads can be repeated.
  await (calls.every(isRead) ? saveThrottled(run) : saveNow(run));
  crashPoint("run.effect.prepared");
  for (let i = 0; i < calls.length; ) {
    // Consecutive reads run concurrently; every effect runs alone and in order.
    const reads = calls.slice(i).findIndex((call) => !isRead(call));
    const size = reads === 0 ? 1 : reads < 0 ? calls.length - i : reads;
    const batch = calls.slice(i, i + size);
    const outcomes = await Promise.allSettled(batch.map((call) => executeCall(run, tools, call)));
    for (const [j, outcome] of outcomes.entries()) {
      if (outcome.status === "fulfilled") appendMessage(run.state, resultMessage(batch[j]!, outcome.value));
    }
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    if (!batch.every(isRead)) {
      await saveNow(run);
      crashPoint("run.effect.recorded");
    }
    i += size;
  }
  await saveThrottled(run);
}

/** Throws RUN_NEEDS_HUMAN, naming every call that only a human can resolve. */
function parkUnknown(run: RunContext, tools: ToolSet, calls: readonly DanglingCall[]): void {
  const parked = calls.flatMap((call) => {
    const verdict = verdictOf(run, tools, call);
    return verdict.action === "park" ? [{ effect: entryOf(run, call)!, reason: verdict.reason }] : [];
  });
  if (parked.length > 0) throw park(run, parked);
}

function park(run: RunContext, parked: readonly { effect: Effect; reason: string }[]): LazarusError {
  for (const { effect, reason } of parked) {
    putEffect(run.state, { ...effect, state: "unknown", error: reason });
  }
  const [first] = parked;
  const names = parked.map(({ effect }) => `${effect.id} (${effect.tool})`).join(", ");
  return new LazarusError(
    "RUN_NEEDS_HUMAN",
    `${names} needs a decision: ${first!.reason}; it is not repeated automatically`,
    {
      hint: `check whether it happened, then: lazarus runs resolve ${first!.effect.id} --done | --retry | --fail`,
      details: { effects: parked.map(({ effect }) => effect.id) },
    },
  );
}

async function executeCall(run: RunContext, tools: ToolSet, call: DanglingCall): Promise<ToolOutcome> {
  for (let attempt = 1; ; attempt += 1) {
    const verdict = verdictOf(run, tools, call);
    if (verdict.action === "answer") return answerFromLedger(run, call, verdict);
    if (verdict.action === "park") {
      throw park(run, [{ effect: entryOf(run, call)!, reason: verdict.reason }]);
    }
    const tool = toolOf(tools, call)!;
    if (verdict.action === "reconcile") {
      const known = await reconcile(run, tool, call);
      if (known !== undefined) return known;
    }
    const outcome = await execute(run, tool, call);
    if (outcome !== undefined) return outcome;
    if (attempt >= MAX_ATTEMPTS) {
      const reason = `its outcome was unknown ${MAX_ATTEMPTS} times in a row`;
      throw park(run, [{ effect: entryOf(run, call)!, reason }]);
    }
  }
}

function answerFromLedger(
  run: RunContext,
  call: DanglingCall,
  verdict: Extract<CallVerdict, { action: "answer" }>,
): ToolOutcome {
  const entry = entryOf(run, call);
  if (verdict.how === "done") {
    return { ok: true, output: entry!.output ?? "The call succeeded; its result was not recorded." };
  }
  if (verdict.how === "not-run" && entry !== undefined) {
    putEffect(run.state, advanceEffect(entry, "failed", timeOf(run), { error: verdict.text }));
  }
  return { ok: false, text: verdict.text };
}

/** Asks the tool whether the effect happened. Undefined when it did not, so that it can be executed. */
async function reconcile(
  run: RunContext,
  tool: DurableTool,
  call: DanglingCall,
): Promise<ToolOutcome | undefined> {
  const entry = entryOf(run, call)!;
  let answer: Awaited<ReturnType<NonNullable<DurableTool["reconcile"]>>>;
  try {
    const asked = Promise.resolve().then(() =>
      tool.reconcile!(entry.key ?? entry.id, copyOf(call.input), toolContext(run, entry, call)),
    );
    answer = await orStopped(asked, run.signal);
  } catch (error) {
    if (run.signal.aborted) throw stopOf(run.signal.reason);
    const reason = `its tool could not reconcile it: ${thrownText(error, "the tool")}`;
    throw park(run, [{ effect: entry, reason }]);
  }
  crashPoint("run.effect.reconciled");
  switch (answer?.outcome) {
    case "done":
      putEffect(run.state, advanceEffect(entry, "done", timeOf(run)));
      return { ok: true, output: answer.output };
    case "not-done":
      return undefined;
    default:
      throw park(run, [{ effect: entry, reason: "its tool does not know whether it happened" }]);
  }
}

/** Calls the tool. Undefined when the tool itself does not know the outcome. */
async function execute(
  run: RunContext,
  tool: DurableTool,
  call: DanglingCall,
): Promise<ToolOutcome | undefined> {
  const entry = await recordStart(run, call);
  run.watch?.toolStarted(call.tool);
  try {
    const started = Promise.resolve().then(async () =>
      lastOf(await tool.execute(copyOf(call.input), toolContext(run, entry, call))),
    );
    const output = await withGrace(run, started, entry.class !== "read");
    crashPoint("run.effect.happened");
    putEffect(run.state, advanceEffect(entry, "done", timeOf(run)));
    run.audit("effect", { effect: entry.id, tool: call.tool, state: "done" });
    return { ok: true, output };
  } catch (error) {
    return recordFailure(run, entry, error);
  } finally {
    run.watch?.toolEnded();
  }
}

/** Makes `started` durable before an effect. If that fails, the entry is reverted: the tool was not called. */
async function recordStart(run: RunContext, call: DanglingCall): Promise<Effect> {
  const before = entryOf(run, call)!;
  const entry = advanceEffect(before, "started", timeOf(run));
  putEffect(run.state, entry);
  try {
    if (entry.class !== "read") {
      await saveNow(run);
      crashPoint("run.effect.started");
    }
    if (run.signal.aborted) throw stopOf(run.signal.reason);
    return entry;
  } catch (error) {
    putEffect(run.state, before);
    throw error;
  }
}

function recordFailure(run: RunContext, entry: Effect, error: unknown): ToolOutcome | undefined {
  if (run.signal.aborted) {
    const stop = stopOf(run.signal.reason);
    // A shutdown leaves `started` for the resume to resolve; a run that ends must record that the outcome is unknown.
    if (stop.kind !== "shutdown" && entry.class !== "read") {
      const text = `the run was stopped during the call: ${stop.message}`;
      putEffect(run.state, { ...entry, state: "unknown", error: text });
    }
    throw stop;
  }
  if (error instanceof UnknownOutcomeError) {
    putEffect(run.state, advanceEffect(entry, "unknown", timeOf(run), { error: error.message }));
    return undefined;
  }
  const text = thrownText(error, "the tool");
  putEffect(run.state, advanceEffect(entry, "failed", timeOf(run), { error: text }));
  run.audit("effect", { effect: entry.id, tool: entry.tool, state: "failed", error: text });
  return { ok: false, text };
}

/** On a stop, an effect gets a grace period to finish, so that its outcome is known; a read is abandoned at once. */
async function withGrace<T>(run: RunContext, started: Promise<T>, hasEffect: boolean): Promise<T> {
  if (!hasEffect) return orStopped(started, run.signal);
  try {
    return await orStopped(started, run.signal);
  } catch (error) {
    if (!run.signal.aborted) throw error;
    const over = new AbortController();
    try {
      const late = run.clock.sleep(run.graceMs, over.signal).then(() => Promise.reject(error));
      return await Promise.race([started, late]);
    } finally {
      over.abort();
    }
  }
}

function verdictOf(run: RunContext, tools: ToolSet, call: DanglingCall): CallVerdict {
  const tool = toolOf(tools, call);
  return verdictOnCall(entryOf(run, call), tool && classOf(tool));
}

function toolOf(tools: ToolSet, call: DanglingCall): DurableTool | undefined {
  return Object.hasOwn(tools, call.tool) ? tools[call.tool] : undefined;
}

function classOf(tool: DurableTool): EffectClass {
  return tool.effect ?? "once";
}

function entryOf(run: RunContext, call: DanglingCall): Effect | undefined {
  return run.state.effects.get(effectId(run.state.info.runId, call.step, call.call));
}

function toolContext(run: RunContext, entry: Effect, call: DanglingCall): ToolContext {
  return {
    effectId: entry.key ?? entry.id,
    attempt: entry.attempts,
    step: call.step,
    info: run.state.info,
    signal: run.signal,
  };
}

/** A tool may mutate its input; neither the transcript nor a second attempt may see that. */
function copyOf(input: unknown): unknown {
  try {
    return structuredClone(input);
  } catch {
    // A schema transform may have produced functions or class instances, which cannot be cloned.
    return input;
  }
}

/** The last value of a generator, whose body runs only when it is read; any other output as it is. */
async function lastOf(output: unknown): Promise<unknown> {
  if (typeof output !== "object" || output === null || !(Symbol.asyncIterator in output)) return output;
  let last: unknown;
  for await (const value of output as AsyncIterable<unknown>) last = value;
  return last;
}
