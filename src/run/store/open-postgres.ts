// Opens run stores in PostgreSQL, for many hosts. In its own file, because it loads the driver.
import { systemMachine } from "../../platform/machine.ts";
import type { PostgresOptions } from "../../platform/postgres/options.ts";
import { openPostgresJournal } from "../journal/postgres.ts";
import { RUN_TABLES } from "../journal/postgres-migrations.ts";
import { createRunStore, type RunStore, type RunStoreOptions } from "./store.ts";

/** Opens a store in the database at `connection` (postgres://…). */
export async function openPostgresRunStore(
  connection: string,
  options: RunStoreOptions & PostgresOptions = {},
): Promise<RunStore> {
  const machine = options.machine ?? systemMachine;
  return createRunStore(await openPostgresJournal(machine, connection, RUN_TABLES, options), options);
}
