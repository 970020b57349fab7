// What a write does to the head of its run. Pure; the same for all journals.
import type { HeadRow, JournalStatus, JournalVerdict, JournalWrite } from "./journal.ts";

/** Runs that a process is executing, or may continue. */
export const CLAIMABLE: readonly JournalStatus[] = ["running", "queued", "waiting"];

/** Runs that have not ended. */
export const OPEN: readonly JournalStatus[] = [...CLAIMABLE, "needs-human"];

/** Whether a run has ended and can no longer change. */
export function isEnded(status: JournalStatus): boolean {
  return !OPEN.includes(status);
}

/** Whether a write may be applied: `next`, or why not. */
export function verdictOf(
  head: Pick<HeadRow, "epoch" | "seq" | "status"> | undefined,
  { epoch, seq }: Pick<JournalWrite, "epoch" | "seq">,
): JournalVerdict | "next" {
  if (head === undefined) return "missing";
  if (head.epoch !== epoch) return "stale";
  if (head.seq === seq) return "written";
  if (head.status !== "running") return "stale";
  return head.seq === seq - 1 ? "next" : "out-of-order";
}

/**
 * The head after the write. A completed step or a release proves that the run does not kill its owner. `wakeMs` of a running
 * run says that something came for it since it was claimed: if it waits now, it is due immediately.
 */
export function nextHead<Head extends HeadRow>(head: Head, write: JournalWrite): Head {
  const isReleased = write.leaseUntilMs === 0;
  const hasMoved = (write.head?.step ?? head.step) > head.step;
  return {
    ...head,
    ...write.head,
    wakeMs: head.wakeMs ?? write.head?.wakeMs ?? null,
    seq: write.seq,
    leaseUntilMs: write.leaseUntilMs,
    owner: isReleased ? null : head.owner,
    deaths: hasMoved || isReleased ? 0 : head.deaths,
    redactions: head.redactions + (write.redactions ?? 0),
    updatedAtMs: write.nowMs,
  };
}
