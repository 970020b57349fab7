// Decisions of the agent's callbacks are made once: approvals, repairs and prepared steps are recorded, and a replay does
// not ask again. A decision that cannot be stored is asked for again.

import { PARTS_PER_CALL } from "../journal/journal.ts";
import { isStorable } from "../log/codec.ts";
import { entryOf } from "../log/entry.ts";
import type { LiveRun } from "./live-run.ts";

/** Kinds of decisions about one call. */
const PURPOSES = ["needs", "approval", "repair"] as const;

/** Asks `decide` about a call, unless the answer is recorded. */
export async function decideOnce<T>(
  run: LiveRun,
  purpose: (typeof PURPOSES)[number],
  callId: string,
  decide: () => T | PromiseLike<T>,
): Promise<T> {
  const place = run.placeOf(callId, purpose);
  if (place === undefined) return decide();
  // The current agent decides again about a call that was approved; that is another decision.
  const again = place.step <= run.base && !run.calls.includes(place) ? PURPOSES.length : 0;
  const call = place.call * PARTS_PER_CALL + PURPOSES.indexOf(purpose) + again;
  const old = await run.awaited(() => run.get(place.step, "decision", call) ?? laterEntry(run, place.step));
  if (old !== undefined && old.kind === "decision") return (old.value as { v: T }).v;
  const v = await decide();
  if (!run.isFollower && run.limit === undefined && isStorable(v)) {
    run.keep(entryOf({ step: place.step, kind: "decision", call }, { v }, { name: purpose, callId }));
  }
  return v;
}

/** A follower stops waiting for a decision once the run has passed the step. */
function laterEntry(run: LiveRun, step: number) {
  return run.isFollower ? (run.get(step + 1, "response") ?? run.get(step, "effect")) : undefined;
}
