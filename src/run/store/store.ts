// A store of runs: a journal with secrets, leases and effect history, and the operations on its runs. This file is
// only the table of operations; each is a function over the run log in its own file.
import { LazarusError } from "../../platform/errors.ts";
import type { Journal } from "../journal/journal.ts";
import type { StoreHistory } from "../log/history.ts";
import { MAX_LEASE_MS } from "../log/lease.ts";
import {
  listHeads,
  listInterrupted,
  readEffects,
  readHead,
  readRecord,
  readTranscript,
} from "../log/read.ts";
import { type Resolution, resolveEntry } from "../log/resolve.ts";
import { createRunLog, type RunLog, type RunLogOptions } from "../log/run-log.ts";
import type {
  Effect,
  InterruptedRun,
  RunHead,
  RunRecord,
  RunStatus,
  TranscriptEntry,
} from "../model/types.ts";
import { forkRun } from "../operations/fork.ts";
import {
  type DeleteOptions,
  deleteRun,
  type PruneReport,
  pruneRuns,
  type RetentionPolicy,
} from "../operations/prune.ts";

/** How a store treats secrets and leases, and on which machine it runs. */
export type RunStoreOptions = RunLogOptions;

/** A human's decision on an effect whose outcome is unknown. */
export type EffectResolution = Resolution;

/** Which runs to list, newest first; default all. */
export interface ListQuery {
  readonly statuses?: readonly RunStatus[];
  readonly agentId?: string;
  readonly limit?: number;
}

/**
 * A store of runs. Every store guarantees:
 * - a resolved write is durable, unless `survives` is false (INV-1);
 * - a write with a stale lease is refused and changes nothing (INV-4);
 * - writes only append; one that is repeated because its reply was lost is applied once;
 * - a run of a newer format throws RUN_NEWER when it is read, and is never written.
 */
export interface RunStore extends AsyncDisposable {
  readonly kind: Journal["kind"];
  readonly place: string;
  /** False for the memory store, whose runs end with the process. */
  readonly survives: boolean;
  /** Duration of a lease; its owner renews it after a third of that. */
  readonly leaseMs: number;
  /** The runs as entries, for the engine and for operations. */
  readonly log: RunLog;
  /** The whole run, or undefined. */
  load(runId: string): Promise<RunRecord | undefined>;
  /** Only the head: cheap, and readable without the encryption key. */
  head(runId: string): Promise<RunHead | undefined>;
  list(query?: ListQuery): Promise<RunHead[]>;
  /** The ledger of one run, in the order of its calls. */
  effects(runId: string): Promise<Effect[]>;
  /** The stored transcript, from message `fromCount` on. */
  history(runId: string, fromCount?: number): Promise<TranscriptEntry[]>;
  /** Runs whose owner is gone, and those that are due. Oldest first. */
  listInterrupted(): Promise<InterruptedRun[]>;
  /** Resolves an effect whose outcome is unknown. A parked run can be resumed once none is unknown. */
  resolve(effectId: string, resolution: EffectResolution): Promise<Effect>;
  /** Adds an interrupted run that shares the first `step` steps of another, which stays unchanged. */
  fork(runId: string, step: number): Promise<RunHead>;
  /**
   * Removes a run except for steps that forks share; false when there is none. Throws RUN_BUSY while it is owned and, without
   * `force`, while it has not ended.
   */
  delete(runId: string, options?: DeleteOptions): Promise<boolean>;
  /** Removes ended runs by policy; checks in the same transaction that every kept run still loads. */
  prune(policy: RetentionPolicy): Promise<PruneReport>;
  sizeBytes(): Promise<number>;
}

/** Creates a store on a journal. `history` is that of the mission, for a store inside a cell. */
export function createRunStore(
  journal: Journal,
  options: RunStoreOptions = {},
  history?: StoreHistory,
): RunStore {
  const { leaseMs: wanted } = options;
  if (wanted !== undefined && !(wanted > 0 && wanted <= MAX_LEASE_MS)) {
    throw new LazarusError("USAGE", `leaseMs is ${wanted}`, {
      hint: "use more than 0 milliseconds and at most a day",
    });
  }
  const log = createRunLog(journal, options, history);
  const { kind, place, survives } = journal;
  return {
    ...{ kind, place, survives, leaseMs: log.leaseMs, log },
    load: (runId) => readRecord(log, runId),
    head: (runId) => readHead(log, runId),
    list: (query) => listHeads(log, query),
    effects: (runId) => readEffects(log, runId),
    history: (runId, fromCount) => readTranscript(log, runId, fromCount),
    listInterrupted: () => listInterrupted(log),
    resolve: (effectId, resolution) => resolveEntry(log, effectId, resolution),
    fork: async (runId, step) => (await readHead(log, (await forkRun(log, runId, step)).head.id))!,
    delete: (runId, deletion) => deleteRun(log, runId, deletion),
    prune: (policy) => pruneRuns(log, policy),
    sizeBytes: () => journal.sizeBytes(),
    [Symbol.asyncDispose]: () => journal[Symbol.asyncDispose](),
  };
}
