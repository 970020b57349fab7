// Finds runs whose owner is gone, and claims them. The claim itself is a compare-and-swap on the epoch, in the backend.
import type { Lease } from "../model/types.ts";
import { findRun, judgeRunLease, type StoreContext, timeOf } from "./context.ts";
import { checkFormat, headOf, newerFormat } from "./row-codec.ts";
import type { InterruptedRun } from "./store.ts";

/** Runs that no living process owns, oldest first. */
export async function listInterrupted(context: StoreContext): Promise<InterruptedRun[]> {
  const rows = await context.backend.listRuns({ statuses: ["running"] });
  return rows
    .filter((row) => judgeRunLease(context, row) !== "held")
    .reverse()
    .map((row) => ({ head: headOf(row), blocked: newerFormat(row) }));
}

/** Claims a run; undefined when it has ended, another process owns it, or another process claims it first. */
export async function claimRun(context: StoreContext, runId: string): Promise<Lease | undefined> {
  const row = await findRun(context, runId);
  if (row === undefined || row.status !== "running" || judgeRunLease(context, row) === "held") {
    return undefined;
  }
  checkFormat(row);
  const { backend, owner } = context;
  const nowMs = timeOf(context);
  const leaseUntilMs = nowMs + context.leaseMs;
  const won = await backend.swapLease({ runId, owner, seenEpoch: row.epoch, leaseUntilMs, nowMs });
  return won ? { runId, epoch: row.epoch + 1, owner } : undefined;
}
