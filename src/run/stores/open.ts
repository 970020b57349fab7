// The ways to open a run store, one line each. A cell's runs lie in `state/runs.db`, so that its checkpoint holds them.
import { join } from "node:path";
import { systemMachine } from "../../platform/machine.ts";
import { createRunStore, type RunStoreOptions } from "../store/run-store.ts";
import type { RunStore } from "../store/store.ts";
import { createMemoryBackend } from "./memory.ts";
import { openSqliteBackend } from "./sqlite.ts";

/** Where the runs of a cell lie, below its root. */
export const CELL_RUNS = join("state", "runs.db");

/** Runs in memory: they end with the process, and the store says so. */
export function createMemoryRunStore(options: RunStoreOptions = {}): RunStore {
  return createRunStore(createMemoryBackend(), options);
}

/** Runs in one SQLite file, made if it is not there. */
export function openSqliteRunStore(path: string, options: RunStoreOptions = {}): RunStore {
  return createRunStore(openSqliteBackend(options.machine ?? systemMachine, path), options);
}

/** The runs of the cell at `cellRoot`. */
export function openCellRunStore(cellRoot: string, options: RunStoreOptions = {}): RunStore {
  return openSqliteRunStore(join(cellRoot, CELL_RUNS), options);
}
