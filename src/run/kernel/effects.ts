// Runs tool calls through the ledger (INV-5): recorded before they start and after they end, in one visible order.
// The order of lines is the promise: prepared is durable before started, started before the tool is called, and the
// result is durable before the model hears of it. What to do with an interrupted call is decided in ledger.ts.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { advanceEffect, type CallVerdict, effectId, verdictOnCall } from "../model/ledger.ts";
import { thrownText } from "../model/thrown.ts";
import { type DanglingCall, resultMessage, type ToolOutcome } from "../model/transcript.ts";
import type { Effect, EffectClass } from "../model/types.ts";
import { type DurableTool, type ToolContext, type ToolSet, UnknownOutcomeError } from "./agent.ts";
import type { RunWork } from "./run-work.ts";
import { prepareEffect, putEffect, say } from "./state.ts";
import { orStopped, stopOf } from "./stop.ts";

/** How often a call whose outcome stays unknown is started within one process. */
const MOST_ATTEMPTS = 3;

/** The class of a tool; `once` unless it declares one. */
export function classOf(tool: DurableTool): EffectClass {
  return tool.effect ?? "once";
}

/** Gives every call a result, or throws: RUN_NEEDS_HUMAN when one has an unknown outcome, RunStopped when stopped. */
export async function settleCalls(
  work: RunWork,
  tools: ToolSet,
  calls: readonly DanglingCall[],
): Promise<void> {
  await parkUnknown(work, tools, calls);
  for (const call of calls) {
    const tool = toolOf(tools, call);
    if (tool !== undefined) prepareEffect(work.state, call, classOf(tool), work.nowMs());
  }
  const isRead = (call: DanglingCall) => {
    const tool = toolOf(tools, call);
    return tool !== undefined && classOf(tool) === "read";
  };
  // What an effect depends on must be durable before it starts; reads can be asked again.
  await work.save(calls.every(isRead) ? "throttled" : "now");
  crashPoint("run.effect.prepared");
  for (let i = 0; i < calls.length; ) {
    const reads = calls.slice(i).findIndex((call) => !isRead(call));
    const together = reads === 0 ? 1 : reads < 0 ? calls.length - i : reads;
    // Reads in a row run together; anything with an effect runs alone and in order.
    const batch = calls.slice(i, i + together);
    const outcomes = await Promise.allSettled(batch.map((call) => settleCall(work, tools, call)));
    for (const [j, outcome] of outcomes.entries()) {
      if (outcome.status === "fulfilled") say(work.state, resultMessage(batch[j]!, outcome.value));
    }
    const failed = outcomes.find((outcome) => outcome.status === "rejected");
    if (failed !== undefined) throw failed.reason;
    if (!batch.every(isRead)) {
      await work.save("now");
      crashPoint("run.effect.recorded");
    }
    i += together;
  }
}

/** Marks every call that only a human can settle, then stops the run. */
async function parkUnknown(work: RunWork, tools: ToolSet, calls: readonly DanglingCall[]): Promise<void> {
  const parked = calls.flatMap((call) => {
    const verdict = verdictOf(work, tools, call);
    return verdict.action === "park" ? [{ effect: ledgerLine(work, call)!, reason: verdict.reason }] : [];
  });
  if (parked.length > 0) throw park(work, parked);
}

function park(work: RunWork, parked: readonly { effect: Effect; reason: string }[]): LazarusError {
  for (const { effect, reason } of parked) {
    putEffect(work.state, { ...effect, state: "unknown", error: reason });
  }
  const [first] = parked;
  const what = parked.map(({ effect }) => `${effect.id} (${effect.tool})`).join(", ");
  return new LazarusError(
    "RUN_NEEDS_HUMAN",
    `nobody knows whether this happened: ${what}: ${first!.reason}; it will not be repeated on a guess`,
    {
      hint: `find out, then: lazarus runs resolve ${first!.effect.id} --done | --retry | --fail`,
      details: { effects: parked.map(({ effect }) => effect.id) },
    },
  );
}

async function settleCall(work: RunWork, tools: ToolSet, call: DanglingCall): Promise<ToolOutcome> {
  for (let round = 1; ; round += 1) {
    const verdict = verdictOf(work, tools, call);
    if (verdict.action === "answer") return answer(work, call, verdict);
    if (verdict.action === "park")
      throw park(work, [{ effect: ledgerLine(work, call)!, reason: verdict.reason }]);
    const tool = toolOf(tools, call)!;
    if (verdict.action === "reconcile") {
      const known = await reconcile(work, tool, call);
      if (known !== undefined) return known;
    }
    const outcome = await execute(work, tool, call);
    if (outcome !== undefined) return outcome;
    if (round >= MOST_ATTEMPTS) {
      throw park(work, [
        {
          effect: ledgerLine(work, call)!,
          reason: `its outcome was unknown ${MOST_ATTEMPTS} times in a row`,
        },
      ]);
    }
  }
}

function answer(
  work: RunWork,
  call: DanglingCall,
  verdict: Extract<CallVerdict, { action: "answer" }>,
): ToolOutcome {
  if (verdict.how === "done") {
    return {
      ok: true,
      output: ledgerLine(work, call)!.output ?? "It was done; what it answered is not on record.",
    };
  }
  const line = ledgerLine(work, call);
  if (verdict.how === "not-run" && line !== undefined) {
    putEffect(work.state, advanceEffect(line, "failed", work.nowMs(), { error: verdict.text }));
  }
  return { ok: false, text: verdict.text };
}

/** Asks the tool whether the effect happened. Undefined when it did not, so that it can be run. */
async function reconcile(
  work: RunWork,
  tool: DurableTool,
  call: DanglingCall,
): Promise<ToolOutcome | undefined> {
  const line = ledgerLine(work, call)!;
  let said: Awaited<ReturnType<NonNullable<DurableTool["reconcile"]>>>;
  try {
    const asked = Promise.resolve().then(() =>
      tool.reconcile!(line.id, ownCopy(call.input), contextOf(work, line, call)),
    );
    said = await orStopped(asked, work.signal);
  } catch (error) {
    if (work.signal.aborted) throw stopOf(work.signal.reason);
    throw park(work, [
      { effect: line, reason: `its tool could not reconcile it: ${thrownText(error, "the tool")}` },
    ]);
  }
  crashPoint("run.effect.reconciled");
  switch (said?.outcome) {
    case "done":
      putEffect(work.state, advanceEffect(line, "done", work.nowMs()));
      return { ok: true, output: said.output };
    case "not-done":
      return undefined;
    default:
      throw park(work, [{ effect: line, reason: "its tool does not know whether it happened" }]);
  }
}

/** Starts the tool. Undefined when the tool itself does not know what became of it. */
async function execute(
  work: RunWork,
  tool: DurableTool,
  call: DanglingCall,
): Promise<ToolOutcome | undefined> {
  const before = ledgerLine(work, call)!;
  const line = advanceEffect(before, "started", work.nowMs());
  putEffect(work.state, line);
  try {
    if (line.class !== "read") {
      await work.save("now");
      crashPoint("run.effect.started");
    }
    if (work.signal.aborted) throw stopOf(work.signal.reason);
  } catch (error) {
    // The tool was not called, so the ledger must not leave open whether it was.
    putEffect(work.state, before);
    throw error;
  }
  work.watch?.toolStarted(call.tool);
  try {
    const started = Promise.resolve().then(() =>
      tool.execute(ownCopy(call.input), contextOf(work, line, call)),
    );
    const output = await withGrace(work, started, line.class !== "read");
    crashPoint("run.effect.happened");
    putEffect(work.state, advanceEffect(line, "done", work.nowMs()));
    work.audit("effect", { effect: line.id, tool: call.tool, state: "done" });
    return { ok: true, output };
  } catch (error) {
    if (work.signal.aborted) {
      const stop = stopOf(work.signal.reason);
      // A shutdown leaves `started` for the resume to judge; an ending must say that nobody knows.
      if (stop.kind !== "shutdown" && line.class !== "read") {
        putEffect(work.state, {
          ...line,
          state: "unknown",
          error: `the run was stopped meanwhile: ${stop.message}`,
        });
      }
      throw stop;
    }
    if (error instanceof UnknownOutcomeError) {
      putEffect(work.state, advanceEffect(line, "unknown", work.nowMs(), { error: error.message }));
      return undefined;
    }
    const text = thrownText(error, "the tool");
    putEffect(work.state, advanceEffect(line, "failed", work.nowMs(), { error: text }));
    work.audit("effect", { effect: line.id, tool: call.tool, state: "failed", error: text });
    return { ok: false, text };
  } finally {
    work.watch?.toolEnded();
  }
}

/** A stopped run gives an effect a moment to end, so that its outcome is known; a read is simply left. */
async function withGrace<T>(work: RunWork, started: Promise<T>, hasEffect: boolean): Promise<T> {
  if (!hasEffect) return orStopped(started, work.signal);
  try {
    return await orStopped(started, work.signal);
  } catch (error) {
    if (!work.signal.aborted) throw error;
    const over = new AbortController();
    try {
      const late = work.clock.sleep(work.graceMs, over.signal).then(() => Promise.reject(error));
      return await Promise.race([started, late]);
    } finally {
      over.abort();
    }
  }
}

function verdictOf(work: RunWork, tools: ToolSet, call: DanglingCall): CallVerdict {
  const tool = toolOf(tools, call);
  return verdictOnCall(ledgerLine(work, call), tool && classOf(tool));
}

function toolOf(tools: ToolSet, call: DanglingCall): DurableTool | undefined {
  return Object.hasOwn(tools, call.tool) ? tools[call.tool] : undefined;
}

function ledgerLine(work: RunWork, call: DanglingCall): Effect | undefined {
  return work.state.effects.get(effectId(work.state.info.runId, call.step, call.call));
}

function contextOf(work: RunWork, line: Effect, call: DanglingCall): ToolContext {
  return {
    effectId: line.id,
    attempt: line.attempts,
    step: call.step,
    info: work.state.info,
    signal: work.signal,
  };
}

/** A tool may change what it is given; the transcript and a second try must not see that. */
function ownCopy(input: unknown): unknown {
  try {
    return structuredClone(input);
  } catch {
    // A schema may make functions or the like of it, which only this process can have.
    return input;
  }
}
