// Where a run can be forked, as a pure function of its transcript: after any step whose calls all have results.
import { danglingCalls } from "../model/transcript.ts";
import type { TranscriptEntry } from "../model/types.ts";

/** Where to cut, or why it cannot be cut there. */
export type ForkCut =
  | { readonly ok: true; readonly count: number; readonly phase: number }
  | { readonly ok: false; readonly why: string };

/** How many messages a fork after `step` shares, and the phase it continues. Step 0 is the input alone. */
export function forkAt(entries: readonly TranscriptEntry[], step: number): ForkCut {
  if (!Number.isInteger(step) || step < 0) return { ok: false, why: "a step is a whole number from 0 up" };
  const last = entries.findLastIndex((entry) => entry.step === step);
  if (last < 0) return { ok: false, why: "it has no such step" };
  const kept = entries.slice(0, last + 1);
  const phase = Math.max(0, kept.at(-1)!.phase);
  if (danglingCalls(kept.filter((entry) => entry.phase === phase)).length > 0) {
    return { ok: false, why: "that step has tool calls without a result" };
  }
  return { ok: true, count: kept.length, phase };
}

/** The last step that a fork can be made at. */
export function lastStepOf(entries: readonly TranscriptEntry[]): number {
  const steps = new Set(entries.map(({ step }) => step));
  return Math.max(-1, ...[...steps].filter((step) => forkAt(entries, step).ok));
}
