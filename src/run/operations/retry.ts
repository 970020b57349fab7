// Allows another attempt for a run whose process died at the same step again and again.
import { LazarusError } from "../../platform/errors.ts";
import { claimRun, type RunLog, requireHead } from "../log/run-log.ts";

/** Resets the crash count of an interrupted run; returns what it was. Throws RUN_ENDED or RUN_BUSY. */
export async function retryRun(log: RunLog, runId: string): Promise<number> {
  const head = await requireHead(log, runId);
  const hint = `lazarus runs show ${runId}`;
  if (head.status !== "running") {
    throw new LazarusError("RUN_ENDED", `run ${runId} is ${head.status}: there is nothing to retry`, {
      hint,
    });
  }
  const lease = await claimRun(log, head);
  if (lease === undefined) throw new LazarusError("RUN_BUSY", `run ${runId} is being worked on`, { hint });
  // Releasing the lease resets the count.
  await log.journal.releaseLease(runId, lease.epoch);
  return head.deaths;
}
