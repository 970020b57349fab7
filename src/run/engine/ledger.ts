// Executes tool calls through the ledger (INV-5). Write order matters: `started` is durable before the tool is called, and
// its result before the model sees it. What to do with an interrupted call is decided in model/ledger.ts. A call that
// neither the model nor an approved request made never runs.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { isStorable } from "../log/codec.ts";
import { type EffectValue, type Entry, effectOf, entryOf } from "../log/entry.ts";
import { recall } from "../log/run-log.ts";
import { inputDigest, verdictOnCall } from "../model/ledger.ts";
import { orStopped, stopOf } from "../model/stop.ts";
import { thrownText } from "../model/thrown.ts";
import type { Effect, EffectClass } from "../model/types.ts";
import type { LiveRun, ResponseCall } from "./live-run.ts";
import { storable, TOO_DEEP } from "./plain-data.ts";

/** A tool's answer to whether an interrupted call took effect. */
export type Reconciliation =
  | { readonly outcome: "done"; readonly output: unknown }
  | { readonly outcome: "not-done" }
  | { readonly outcome: "unknown" };

/** Thrown by a tool that does not know whether its effect happened, such as on a timeout after sending a request. */
export class UnknownOutcomeError extends Error {
  override readonly name = "UnknownOutcomeError";
}

/** A tool as the ledger sees it. */
export interface LedgerTool {
  readonly name: string;
  readonly class: EffectClass;
  reconcile?(effectId: string, input: never, effect: RunningEffect): Promise<Reconciliation> | Reconciliation;
}

/** A call that may run now. */
export interface RunningEffect {
  readonly runId: string;
  /** Derived from run, step and call, and stable across resumes: the idempotency key. */
  readonly id: string;
  /** 1 for the first attempt, higher after a resume. */
  readonly attempt: number;
  readonly step: number;
  readonly call: number;
}

/** How often a call whose outcome stays unknown is started within one process. */
const MAX_ATTEMPTS = 3;

/** What to do with a call: its result is already known, or it may run. */
export type Begun = { readonly how: "known"; readonly output: unknown } | ({ readonly how: "run" } & Started);

/** A call that has started. */
interface Started {
  readonly effect: RunningEffect;
  readonly entry: Entry;
  /** A human decided that this attempt may repeat what earlier ones left unfinished. */
  readonly retried: boolean;
}

/** Decides about a call and, if it may run, records that it starts. Throws what the call threw when it is known to have failed. */
export async function beginCall(
  run: LiveRun,
  tool: LedgerTool,
  place: ResponseCall,
  input: unknown,
): Promise<Begun> {
  if (run.isPast && run.get(place.step, "effect", place.call) === undefined)
    await haltMissingCall(run, tool, place);
  for (;;) {
    const entry = await run.awaited(() => endedEntry(run, place));
    if (entry?.state === "done")
      return { how: "known", output: (entry.value as EffectValue | undefined)?.output };
    if (entry?.state === "failed") throw recordedError(entry.value as EffectValue);
    const open = openEntry(run, tool, place, input);
    const effect = effectOf(run.id, open);
    const verdict = verdictOnCall(effect, tool.class);
    switch (verdict.action) {
      case "answer":
        await run.write(
          endEntry(run, open, verdict.how === "done" ? "done" : "failed", recalled(effect, verdict.text)),
          "full",
        );
        continue;
      case "park":
        return park(run, [{ entry: open, reason: verdict.reason }]);
      case "reconcile":
        if (await reconcile(run, tool, open, input)) continue;
        return start(run, open);
      case "run":
        if (effect.state === "unknown" && effect.attempts >= MAX_ATTEMPTS) {
          return park(run, [
            { entry: open, reason: `its outcome was unknown ${MAX_ATTEMPTS} times in a row` },
          ]);
        }
        return start(run, open);
    }
  }
}

/** A replay of an earlier part of the run that asks for a call it never made. */
async function haltMissingCall(run: LiveRun, tool: LedgerTool, place: ResponseCall): Promise<void> {
  if (run.limit === undefined || run.isFollower) return;
  run.halt(
    new LazarusError(
      "RUN_CHANGED",
      `run ${run.id} waits before ${tool.name} (${run.effectIdOf(place)}), which this agent would call immediately`,
      { hint: "resume it with the version of the agent that started it" },
    ),
  );
  throw new CallHalted();
}

function endedEntry(run: LiveRun, place: ResponseCall): Entry | undefined {
  const entry = run.get(place.step, "effect", place.call);
  return entry?.state === "done" || entry?.state === "failed" ? entry : undefined;
}

/** The entry of a call that has not ended, or a new one. The effect history may have more than a restored store. */
function openEntry(run: LiveRun, tool: LedgerTool, place: ResponseCall, input: unknown): Entry {
  const { step, call, callId } = place;
  const digest = inputDigest(input);
  const redacted = run.wasRecorded(step, "response") && run.get(step, "response")?.redacted === true;
  const entry =
    run.get(step, "effect", call) ??
    entryOf({ step, kind: "effect", call }, undefined, {
      ...{ state: "prepared", attempts: 0, name: tool.name, class: tool.class, callId, startedMs: null },
    });
  const asked = { ...entry, digest, redacted: entry.redacted || redacted };
  if (entry.class === "read") return asked;
  const known = recall(run.log, effectOf(run.id, asked));
  if (known.state === entry.state && known.key === undefined && known.attempts === entry.attempts)
    return asked;
  return {
    ...asked,
    state: known.state,
    attempts: known.attempts,
    value: {
      ...(known.output === null ? {} : { output: known.output }),
      ...(known.error === null ? {} : { error: known.error }),
      ...(known.key === undefined ? {} : { key: known.key }),
    },
  };
}

/** What only the history, not this store, records about a call. */
function recalled(effect: Effect, text: string): EffectValue {
  if (effect.state === "done")
    return { output: effect.output ?? "The call succeeded; its result was not recorded." };
  return { error: text };
}

async function start(run: LiveRun, before: Entry): Promise<Extract<Begun, { how: "run" }>> {
  const { retried = false, ...value } = (before.value ?? {}) as EffectValue;
  const entry: Entry = {
    ...before,
    // Not recorded with the start: if this attempt is interrupted, the next one must ask again.
    value: before.value === undefined ? undefined : value,
    state: "started",
    attempts: before.attempts + 1,
    startedMs: run.now(),
    endedMs: null,
  };
  if (run.stop.signal.aborted) throw stopOf(run.stop.signal.reason);
  if (entry.class === "read") run.keep(entry);
  else {
    crashPoint("engine.effect.prepared");
    try {
      await run.write(entry, "full");
    } catch (error) {
      // The tool was not called.
      run.keep(before);
      run.halt(error);
      throw error;
    }
    crashPoint("engine.effect.started");
    if (run.stop.signal.aborted) {
      run.keep(before);
      throw stopOf(run.stop.signal.reason);
    }
  }
  const { key } = (entry.value ?? {}) as EffectValue;
  const { step, call } = entry;
  const effect = { runId: run.id, id: key ?? run.effectIdOf(entry), attempt: entry.attempts, step, call };
  return { how: "run", effect, entry, retried: retried && before.state === "prepared" };
}

/**
 * Records a result, and returns what the model is told. Output that is not plain data is stored as JSON, with a warning.
 */
export async function finishCall(run: LiveRun, entry: Entry, output: unknown): Promise<unknown> {
  crashPoint("engine.effect.happened");
  const { key } = (entry.value ?? {}) as EffectValue;
  const value = { output: storable(run, entry, output), ...(key === undefined ? {} : { key }) };
  const ended = endEntry(run, entry, "done", value);
  await writeEnd(run, ended);
  if (entry.class !== "read") crashPoint("engine.effect.recorded");
  return value.output === TOO_DEEP ? TOO_DEEP : output;
}

/** Records that a call threw. Returns true when the outcome is unknown and the call needs another decision. */
export async function failCall(run: LiveRun, entry: Entry, error: unknown): Promise<boolean> {
  const { key } = (entry.value ?? {}) as EffectValue;
  const kept = key === undefined ? {} : { key };
  if (run.stop.signal.aborted) {
    const stop = stopOf(run.stop.signal.reason);
    // A shutdown leaves `started` for the resume to resolve; a run that ends must record that the outcome is unknown.
    if (ENDING.has(stop.kind) && entry.class !== "read") {
      const text = `the run was stopped during the call: ${stop.message}`;
      run.keep({ ...entry, state: "unknown", value: { error: text, ...kept } }, "full");
    }
    throw stop;
  }
  if (error instanceof Error && error.name === "UnknownOutcomeError") {
    await writeEnd(run, { ...entry, state: "unknown", value: { error: thrownText(error), ...kept } });
    return true;
  }
  const thrown = isStorable(error) ? { thrown: error } : {};
  const value = { error: thrownText(error, "the tool"), ...thrown, ...kept };
  await writeEnd(run, endEntry(run, entry, "failed", value));
  return false;
}

const ENDING: ReadonlySet<string> = new Set(["cancelled", "timeout", "killed"]);

async function writeEnd(run: LiveRun, entry: Entry): Promise<void> {
  try {
    if (entry.class === "read") run.keep(entry);
    else await run.write(entry, "full");
  } catch (error) {
    run.halt(error);
    throw error;
  }
}

function endEntry(run: LiveRun, entry: Entry, state: "done" | "failed", value: EffectValue): Entry {
  return { ...entry, state, endedMs: run.now(), value };
}

function recordedError({ thrown, error }: EffectValue): unknown {
  return thrown ?? new Error(error ?? "the call failed");
}

/** Asks the tool whether the effect happened, and records the answer. False when it did not, so that it can be executed. */
async function reconcile(run: LiveRun, tool: LedgerTool, entry: Entry, input: unknown): Promise<boolean> {
  const { key } = (entry.value ?? {}) as EffectValue;
  const id = key ?? run.effectIdOf(entry);
  const { step, call, attempts } = entry;
  let answer: Reconciliation;
  try {
    const asked = Promise.resolve().then(() =>
      tool.reconcile!(id, input as never, { runId: run.id, id, attempt: attempts, step, call }),
    );
    answer = await orStopped(asked, run.stop.signal);
  } catch (error) {
    if (run.stop.signal.aborted) throw stopOf(run.stop.signal.reason);
    return park(run, [
      { entry, reason: `its tool could not reconcile it: ${thrownText(error, "the tool")}` },
    ]);
  }
  crashPoint("engine.effect.reconciled");
  if (answer?.outcome === "not-done") return false;
  if (answer?.outcome !== "done") {
    return park(run, [{ entry, reason: "its tool does not know whether it happened" }]);
  }
  await writeEnd(run, endEntry(run, entry, "done", { output: storable(run, entry, answer.output) }));
  return true;
}

/** Ends the work on a call whose run has been halted; the SDK is not told of it. */
export class CallHalted extends Error {
  override readonly name = "CallHalted";
}

function park(run: LiveRun, parked: readonly { entry: Entry; reason: string }[]): never {
  parkCalls(run, parked);
  throw new CallHalted();
}

/** Stops the run until a human has decided about these calls, and about all others of the step that need it. */
export function parkCalls(run: LiveRun, parked: readonly { entry: Entry; reason: string }[]): void {
  const first = parked[0]!;
  const others = run
    .entriesOf("effect")
    .filter((entry) => entry.step === first.entry.step && entry.call !== first.entry.call)
    .filter((entry) => run.wasRecorded(entry.step, "effect", entry.call))
    .flatMap((entry) => {
      const verdict = verdictOnCall(effectOf(run.id, entry), entry.class ?? undefined);
      return verdict.action === "park" ? [{ entry, reason: verdict.reason }] : [];
    });
  const all = [...parked, ...others];
  for (const { entry, reason } of all) {
    run.keep({ ...entry, state: "unknown", value: { ...(entry.value as object), error: reason } }, "full");
  }
  run.halt(needsHuman(run, all));
}

/** The SDK itself answers calls of tools that no longer exist; a human decides about one whose outcome is unknown. */
export function parkRemovedTools(run: LiveRun, tools: readonly string[]): void {
  if (run.isFollower || run.limit !== undefined) return;
  const parked = run
    .entriesOf("effect")
    .filter(({ name, class: kind }) => kind !== "read" && name !== null && !tools.includes(name))
    .flatMap((entry) => {
      const verdict = verdictOnCall(effectOf(run.id, entry), undefined);
      return verdict.action === "park" ? [{ entry, reason: verdict.reason }] : [];
    });
  if (parked.length > 0) parkCalls(run, parked);
}

function needsHuman(run: LiveRun, parked: readonly { entry: Entry; reason: string }[]): LazarusError {
  const ids = parked.map(({ entry }) => run.effectIdOf(entry));
  const names = parked.map(({ entry }) => `${run.effectIdOf(entry)} (${entry.name})`).join(", ");
  return new LazarusError(
    "RUN_NEEDS_HUMAN",
    `${names} needs a decision: ${parked[0]!.reason}; it is not repeated automatically`,
    {
      hint: `check whether it happened, then: lazarus runs resolve ${ids[0]} --done | --retry | --fail`,
      details: { effects: ids },
    },
  );
}

/** On a stop, an effect gets a grace period to finish, so that its outcome is known; a read is abandoned immediately. */
export async function withGrace<T>(run: LiveRun, started: Promise<T>, hasEffect: boolean): Promise<T> {
  const { signal } = run.stop;
  if (!hasEffect) return orStopped(started, signal);
  try {
    return await orStopped(started, signal);
  } catch (error) {
    if (!signal.aborted) throw error;
    const over = new AbortController();
    try {
      const late = run.log.machine.clock.sleep(run.graceMs, over.signal).then(() => Promise.reject(error));
      return await Promise.race([started, late]);
    } finally {
      over.abort();
    }
  }
}
