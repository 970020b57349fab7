// Reads a run and its transcript, which spans all the runs it was forked from, and checks that it is complete. A save or
// a prune may run between two reads: later messages are left out, and a run that is deleted meanwhile counts as
// unknown, not as damaged.
import { LazarusError } from "../../platform/errors.ts";
import type { RunRecord, StoredError, TranscriptEntry } from "../model/types.ts";
import type { RunBackend, RunRow } from "./backend.ts";
import { findRun, readEffects, requireRun, type StoreContext, unknownRun } from "./context.ts";
import { checkFormat, damagedRun, entryOf, headOf, PLACES, phaseOf, runInfoOf } from "./row-codec.ts";

/** A whole run, or undefined. */
export async function loadRun(context: StoreContext, runId: string): Promise<RunRecord | undefined> {
  const { backend, seal } = context;
  const row = await findRun(context, runId);
  if (row === undefined) return undefined;
  checkFormat(row);
  // Concurrently: each is a round trip to a server.
  const [transcript, phases, effects] = await Promise.all([
    readTranscript(context, row).catch((error) => {
      if (error instanceof LazarusError && error.code === "RUN_UNKNOWN") return undefined;
      throw error;
    }),
    backend.readPhases(runId),
    readEffects(context, runId),
  ]);
  if (transcript === undefined) return undefined;
  return {
    head: headOf(row),
    info: runInfoOf(seal, row),
    transcript,
    phases: phases.map((phase) => phaseOf(seal, runId, phase)),
    effects,
    output: row.output === null ? null : String(seal.open(PLACES.output(runId), row.output)),
    error: row.error === null ? null : (seal.open(PLACES.error(runId), row.error) as StoredError),
  };
}

/** The transcript of a run, from message `fromCount` on. */
export async function readHistory(
  context: StoreContext,
  runId: string,
  fromCount = 0,
): Promise<TranscriptEntry[]> {
  const row = await requireRun(context, runId);
  checkFormat(row);
  return readTranscript(context, row, fromCount);
}

/** The transcript up to the length in `row`. Throws RUN_DAMAGED, or RUN_UNKNOWN when the run was deleted meanwhile. */
export async function readTranscript(
  { backend, seal }: StoreContext,
  row: RunRow,
  fromCount = 0,
): Promise<TranscriptEntry[]> {
  const ownerOf = await messageOwners(backend, row);
  const rows = (await backend.readMessages(row.id)).slice(0, row.seq);
  if (rows.length !== row.seq || rows.some(({ seq }, i) => seq !== i)) {
    const current = await backend.readRun(row.id);
    if (current === undefined || current.status === "stub") throw unknownRun(row.id, backend.place);
    throw damagedRun(row.id, `has ${rows.length} of its ${row.seq} messages`);
  }
  return rows.slice(fromCount).map((message) => entryOf(seal, ownerOf(message.seq), message));
}

/** Maps a message to the run whose rows hold it: the seal is bound to that run's id. */
async function messageOwners(backend: RunBackend, row: RunRow): Promise<(seq: number) => string> {
  const chain: { id: string; forkSeq: number }[] = [];
  for (let current: RunRow | undefined = row; current !== undefined; ) {
    const { id, forkOf, forkSeq }: RunRow = current;
    if (chain.some((ancestor) => ancestor.id === id)) {
      throw damagedRun(row.id, `is forked from itself, through ${id}`);
    }
    chain.push({ id, forkSeq: forkOf === null ? 0 : forkSeq });
    current = forkOf === null ? undefined : await backend.readRun(forkOf);
  }
  return (seq) => chain.find(({ forkSeq }) => seq >= forkSeq)?.id ?? row.id;
}
