// Errors that every journal reports with the same message.
import { LazarusError } from "../../platform/errors.ts";
import type { Lease } from "../model/types.ts";
import type { JournalVerdict } from "./journal.ts";

/** A prune that would make a kept run unreadable. Throwing it rolls the prune back. */
export function missingResponses(runId: string, found: number, steps: number): LazarusError {
  return new LazarusError(
    "RUN_DAMAGED",
    `run ${runId} would have ${found} of its ${steps} responses; nothing was pruned`,
    { hint: `lazarus runs show ${runId}`, details: { runId, found, steps } },
  );
}

/** A run that was claimed or decided on since a plan saw it. Throwing it rolls the prune back. */
export function claimedDuringPrune(runId: string): LazarusError {
  return new LazarusError("RUN_BUSY", `run ${runId} was claimed while it was pruned; nothing was pruned`, {
    hint: "run the same command again",
    details: { runId },
  });
}

/** The error for a refused write. */
export function journalRefusal(
  verdict: Exclude<JournalVerdict, "written">,
  lease: Lease,
  place: string,
): LazarusError {
  const { runId, epoch } = lease;
  const show = { hint: `lazarus runs show ${runId}`, details: { runId, epoch } };
  switch (verdict) {
    case "stale":
      return new LazarusError(
        "RUN_STALE_LEASE",
        `the lease of run ${runId} (epoch ${epoch}) is stale: the run has a newer owner or has ended; nothing was written`,
        show,
      );
    case "out-of-order":
      return new LazarusError(
        "RUN_OUT_OF_ORDER",
        `run ${runId} in ${place} has writes that this process did not make; nothing was written`,
        show,
      );
    case "missing":
      return new LazarusError("RUN_UNKNOWN", `run ${runId} is no longer in ${place}`, {
        ...show,
        hint: "lazarus runs",
      });
  }
}
