// Opens run stores in memory and in SQLite. A cell's runs are in `state/runs.db`, so that its checkpoints include them. A
// store in a cell uses the effect history of its mission, which its checkpoints do not include.
import { join } from "node:path";
import { openHistoryAt } from "../../effects/history.ts";
import { systemMachine } from "../../platform/machine.ts";
import { createMemoryJournal, openSqliteJournal } from "../journal/sqlite.ts";
import { RUNS_DATABASE } from "../journal/sqlite-migrations.ts";
import { createRunStore, type RunStore, type RunStoreOptions } from "./store.ts";

/** Path of a cell's run store, relative to the cell. */
export const CELL_RUNS = join("state", "runs.db");

/** Creates a store in memory, whose runs end with the process. */
export function createMemoryRunStore(options: RunStoreOptions = {}): RunStore {
  return createRunStore(createMemoryJournal(), options);
}

/** Opens a store in one SQLite file; creates it if it does not exist. */
export function openSqliteRunStore(path: string, options: RunStoreOptions = {}): RunStore {
  const machine = options.machine ?? systemMachine;
  return createRunStore(
    openSqliteJournal(machine, path, RUNS_DATABASE),
    options,
    openHistoryAt(machine, path),
  );
}

/** Opens the store of the cell at `cellRoot`. */
export function openCellRunStore(cellRoot: string, options: RunStoreOptions = {}): RunStore {
  return openSqliteRunStore(join(cellRoot, CELL_RUNS), options);
}
