// Creates a run store on any backend. This file is only the table of operations; each operation is a function over the
// store's context in a file of its own.
import { LazarusError } from "../../platform/errors.ts";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import type { Journal } from "../journal/journal.ts";
import { createMemoryJournal } from "../journal/memory.ts";
import { recallEffect, type StoreHistory } from "../log/history.ts";
import { DEFAULT_LEASE_MS, MAX_LEASE_MS, ownerName } from "../log/lease.ts";
import { resolveEntry } from "../log/resolve.ts";
import { createRunLog, type RunLog } from "../log/run-log.ts";
import { createSeal, type SealOptions } from "../log/seal.ts";
import { parseEffectId } from "../model/ledger.ts";
import type { RunBackend } from "./backend.ts";
import { claimRun, listInterrupted } from "./claim.ts";
import { findRun, readEffects, type StoreContext, timeOf } from "./context.ts";
import { forkRun } from "./fork.ts";
import { loadRun, readHistory } from "./load.ts";
import { deleteRun, pruneRuns } from "./prune.ts";
import { resolveEffect } from "./resolve.ts";
import { headOf } from "./row-codec.ts";
import { beginRun, saveChange } from "./save.ts";
import type { RunStore } from "./store.ts";

/** How a store treats secrets and leases, and on which machine it runs. */
export interface RunStoreOptions extends SealOptions {
  readonly machine?: Machine;
  /** How long this process owns a run after each save or renewal, default 30000. */
  readonly leaseMs?: number;
}

/** Creates a run store on a backend. `history` is that of the mission, for a store inside a cell. */
export function createRunStore(
  backend: RunBackend,
  options: RunStoreOptions = {},
  history?: StoreHistory,
  openJournal: () => Journal = createMemoryJournal,
): RunStore {
  const machine = options.machine ?? systemMachine;
  const leaseMs = Math.ceil(options.leaseMs ?? DEFAULT_LEASE_MS);
  if (!(leaseMs > 0 && leaseMs <= MAX_LEASE_MS)) {
    throw new LazarusError("USAGE", `leaseMs is ${leaseMs}`, {
      hint: "use more than 0 milliseconds and at most a day",
    });
  }
  const seal = createSeal(machine.ids, options);
  const owner = ownerName(machine.processes);
  const context: StoreContext = { backend, seal, machine, owner, leaseMs, history };
  let log: RunLog | undefined;
  return {
    get log() {
      log ??= createRunLog(openJournal(), options, history);
      return log;
    },
    kind: backend.kind,
    place: backend.place,
    survives: backend.survives,
    leaseMs,
    begin: (info, entries) => beginRun(context, info, entries),
    save: (lease, change) => saveChange(context, lease, change),
    close: (lease, change, closing) => saveChange(context, lease, change, closing),
    load: (runId) => loadRun(context, runId),
    async head(runId) {
      const row = await findRun(context, runId);
      return row && headOf(row);
    },
    list: async (query = {}) => (await backend.listRuns(query)).map(headOf),
    effects: (runId) => readEffects(context, runId),
    recall: async (effect) => recallEffect(context, effect),
    history: (runId, fromCount) => readHistory(context, runId, fromCount),
    listInterrupted: () => listInterrupted(context),
    claim: (runId) => claimRun(context, runId),
    renew: ({ runId, epoch }) => backend.renewLease(runId, epoch, timeOf(context) + leaseMs),
    async release({ runId, epoch }) {
      await backend.releaseLease(runId, epoch);
    },
    async resolve(effectId, resolution) {
      const runId = parseEffectId(effectId)?.runId;
      const isOwn = runId === undefined || (await findRun(context, runId)) !== undefined;
      // Otherwise it is an effect of a durable agent.
      return isOwn
        ? resolveEffect(context, effectId, resolution)
        : resolveEntry(this.log, effectId, resolution);
    },
    fork: (runId, step) => forkRun(context, runId, step),
    delete: (runId) => deleteRun(context, runId),
    prune: (policy) => pruneRuns(context, policy),
    sizeBytes: () => backend.sizeBytes(),
    async [Symbol.asyncDispose]() {
      await log?.journal[Symbol.asyncDispose]();
      await backend[Symbol.asyncDispose]();
    },
  };
}
