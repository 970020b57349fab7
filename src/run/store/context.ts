// What every operation of a run store works with, and the lookups they share.
import { LazarusError } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import type { StoreHistory } from "../log/history.ts";
import { isOwnerAlive, isOwnerDead, judgeLease, type LeaseVerdict } from "../log/lease.ts";
import type { Seal } from "../log/seal.ts";
import type { Effect } from "../model/types.ts";
import type { RunBackend, RunRow } from "./backend.ts";
import { effectOf } from "./row-codec.ts";

/** One open store. */
export interface StoreContext {
  readonly backend: RunBackend;
  readonly seal: Seal;
  readonly machine: Machine;
  /** Names this process in leases. */
  readonly owner: string;
  readonly leaseMs: number;
  /** Of the mission that the store belongs to; undefined outside a cell. */
  readonly history: StoreHistory | undefined;
}

/** Wall-clock time in whole milliseconds, as it is stored. */
export function timeOf({ machine }: StoreContext): number {
  return Math.floor(machine.clock.nowMs());
}

/** The row of a run, or undefined. A stub is not a run. */
export async function findRun({ backend }: StoreContext, runId: string): Promise<RunRow | undefined> {
  const row = await backend.readRun(runId);
  return row === undefined || row.status === "stub" ? undefined : row;
}

/** The row of a run. Throws RUN_UNKNOWN. */
export async function requireRun(context: StoreContext, runId: string): Promise<RunRow> {
  const row = await findRun(context, runId);
  if (row === undefined) throw unknownRun(runId, context.backend.place);
  return row;
}

/** The error for a run that does not exist. */
export function unknownRun(runId: string, place: string): LazarusError {
  return new LazarusError("RUN_UNKNOWN", `no run ${JSON.stringify(runId)} in ${place}`, {
    hint: "lazarus runs",
  });
}

/** The ledger of a run, in the order of its calls. */
export async function readEffects({ backend, seal }: StoreContext, runId: string): Promise<Effect[]> {
  return (await backend.readEffects(runId)).map((row) => effectOf(seal, runId, row));
}

/** Whether this process could claim the run now. */
export function judgeRunLease(context: StoreContext, row: RunRow): LeaseVerdict {
  const { owner } = row;
  // A process of this host that was busy past its lease is still working: a second one would repeat its effects.
  if (owner !== null && row.leaseUntilMs !== 0 && isOwnerAlive(context.machine.processes, owner))
    return "held";
  const ownerDead =
    owner !== null && owner !== context.owner && isOwnerDead(context.machine.processes, owner);
  return judgeLease(row, timeOf(context), ownerDead);
}

/** Throws RUN_BUSY for a run that a living process is executing. */
export function refuseOwned(context: StoreContext, row: RunRow): void {
  if (row.status !== "running" || judgeRunLease(context, row) !== "held") return;
  throw new LazarusError("RUN_BUSY", `run ${row.id} is owned by ${row.owner}`, {
    hint: "stop that process, or wait until its lease ends",
  });
}
