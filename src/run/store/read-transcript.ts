// Reads a run's transcript from a backend, through all the runs it was forked from, and proves that it is whole. A save
// or a prune may come between two reads: what was said later is left out, and a run that went away meanwhile is gone,
// not damaged.
import { LazarusError } from "../../platform/errors.ts";
import type { TranscriptEntry } from "../model/types.ts";
import type { RunBackend, RunRow } from "./backend.ts";
import { damagedRun, entryOf } from "./row-codec.ts";
import type { Seal } from "./seal.ts";

/** The transcript as long as `row` says, from message `fromCount` on. Throws RUN_DAMAGED, or RUN_UNKNOWN if it is gone. */
export async function readTranscript(
  backend: RunBackend,
  seal: Seal,
  row: RunRow,
  fromCount = 0,
): Promise<TranscriptEntry[]> {
  const ownerOf = await ownersOf(backend, row);
  const rows = (await backend.readMessages(row.id)).slice(0, row.seq);
  if (rows.length !== row.seq || rows.some(({ seq }, i) => seq !== i)) {
    const now = await backend.readRun(row.id);
    if (now === undefined || now.status === "stub") throw unknownRun(row.id, backend.place);
    throw damagedRun(row.id, `has ${rows.length} of its ${row.seq} messages`);
  }
  return rows.slice(fromCount).map((each) => entryOf(seal, ownerOf(each.seq), each));
}

/** What is said of a run that is not there. */
export function unknownRun(runId: string, place: string): LazarusError {
  return new LazarusError("RUN_UNKNOWN", `there is no run ${JSON.stringify(runId)} in ${place}`, {
    hint: "lazarus runs",
  });
}

/** The run that a message of `row`'s transcript lies in: its place is what the seal is bound to. */
async function ownersOf(backend: RunBackend, row: RunRow): Promise<(seq: number) => string> {
  const chain: { id: string; forkSeq: number }[] = [];
  for (let each: RunRow | undefined = row; each !== undefined; ) {
    const { id, forkOf, forkSeq }: RunRow = each;
    if (chain.some((above) => above.id === id))
      throw damagedRun(row.id, `is forked from itself, through ${id}`);
    chain.push({ id, forkSeq: forkOf === null ? 0 : forkSeq });
    each = forkOf === null ? undefined : await backend.readRun(forkOf);
  }
  return (seq) => chain.find(({ forkSeq }) => seq >= forkSeq)?.id ?? row.id;
}
