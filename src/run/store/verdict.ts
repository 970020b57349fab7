// Decides why a fenced write changed no row, as a pure function shared by all backends. A write whose reply was lost
// (PostgreSQL stopped after the commit) is recognized and counts as written.
import { LazarusError } from "../../platform/errors.ts";
import type { Lease } from "../model/types.ts";
import type { RunRow, StepWrite, WriteVerdict } from "./backend.ts";

/** `lastBody` is the stored body at the position of the last message in `write`. */
export function diagnoseWrite(
  row: Pick<RunRow, "epoch" | "seq" | "status"> | undefined,
  write: StepWrite,
  lastBody: string | undefined,
): WriteVerdict {
  if (row === undefined) return "missing";
  if (row.epoch !== write.epoch) return "stale";
  const last = write.messages.at(-1);
  const sameMessages =
    row.seq === write.fromSeq + write.messages.length && (last === undefined || last.body === lastBody);
  if (sameMessages && row.status === write.status) return "written";
  return row.status === "running" ? "out-of-order" : "stale";
}

/** The error for a refused write. */
export function writeRefusal(
  verdict: "stale" | "out-of-order" | "missing",
  lease: Lease,
  place: string,
): LazarusError {
  const details = { runId: lease.runId, epoch: lease.epoch };
  switch (verdict) {
    case "stale":
      return new LazarusError(
        "RUN_STALE_LEASE",
        `the lease of run ${lease.runId} (epoch ${lease.epoch}) is stale: the run has a newer owner or has ended; nothing was written`,
        { hint: `lazarus runs show ${lease.runId}`, details },
      );
    case "out-of-order":
      return new LazarusError(
        "RUN_OUT_OF_ORDER",
        `run ${lease.runId} in ${place} has messages that this process did not write; nothing was written`,
        { hint: `lazarus runs show ${lease.runId}`, details },
      );
    case "missing":
      return new LazarusError("RUN_UNKNOWN", `run ${lease.runId} is no longer in ${place}`, {
        hint: "lazarus runs",
        details,
      });
  }
}
