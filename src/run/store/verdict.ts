// Why a fenced write changed no row, as a pure function: the same answer in every backend. A write whose answer got
// lost on the way (Postgres stopped after the commit) is recognised and counts as written.
import { LazarusError } from "../../platform/errors.ts";
import type { Lease } from "../model/types.ts";
import type { RunRow, StepWrite, WriteVerdict } from "./backend.ts";

/** `lastBody` is the body of the message that `write` would have put last, as the store has it. */
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

/** What a refused write is told. */
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
        `run ${lease.runId} has a newer owner than epoch ${lease.epoch}, or has ended; nothing was written`,
        { hint: `lazarus runs show ${lease.runId}`, details },
      );
    case "out-of-order":
      return new LazarusError(
        "RUN_OUT_OF_ORDER",
        `run ${lease.runId} in ${place} has other messages than this process wrote; nothing was written`,
        { hint: `lazarus runs show ${lease.runId}`, details },
      );
    case "missing":
      return new LazarusError("RUN_UNKNOWN", `run ${lease.runId} is no longer in ${place}`, {
        hint: "lazarus runs",
        details,
      });
  }
}
