// Why a fenced write changed no row, as a pure function: the same answer in every backend. A write whose answer got
// lost on the way (Postgres stopped after the commit) is recognised and counts as written.
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
