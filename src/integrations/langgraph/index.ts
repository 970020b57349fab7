// lazarus/langgraph: a checkpoint saver for LangGraph on SQLite or PostgreSQL.
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import type { PostgresOptions } from "../../platform/postgres.ts";
import { openPostgresRows } from "./postgres-rows.ts";
import { LazarusSaver } from "./saver.ts";
import { openSqliteRows, type Survives } from "./sqlite-rows.ts";

/** What every saver takes. */
export interface SaverOptions {
  readonly machine?: Machine;
  /** LangGraph's JSON serializer unless given. */
  readonly serde?: SerializerProtocol;
}

/** What a saver in a file takes besides. */
export interface SqliteSaverOptions extends SaverOptions {
  /** What a step outlives once it was saved; `power-loss` unless told. */
  readonly survives?: Survives;
}

/** A saver in one SQLite file, made if it is not there. In a cell, `state/langgraph.db` is part of its checkpoints. */
export function openSqliteSaver(path: string, options: SqliteSaverOptions = {}): LazarusSaver {
  const machine = options.machine ?? systemMachine;
  const rows = openSqliteRows(machine, path, options.survives);
  return new LazarusSaver(rows, machine.ids, options.serde);
}

/** A saver in the database that `connection` (postgres://…) names; its tables are made if they are not there. */
export async function openPostgresSaver(
  connection: string,
  options: SaverOptions & PostgresOptions = {},
): Promise<LazarusSaver> {
  const machine = options.machine ?? systemMachine;
  return new LazarusSaver(await openPostgresRows(machine, connection, options), machine.ids, options.serde);
}

export { LazarusSaver } from "./saver.ts";
export type { PostgresOptions, Survives };
