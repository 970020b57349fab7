// `lazarus/langgraph`: a checkpoint saver for LangGraph on SQLite or PostgreSQL.
import type { SerializerProtocol } from "@langchain/langgraph-checkpoint";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import type { PostgresOptions } from "../../platform/postgres/options.ts";
import { openPostgresRows } from "./postgres-rows.ts";
import { LazarusSaver } from "./saver.ts";
import { openSqliteRows, type Survives } from "./sqlite-rows.ts";

/** Options of every saver. */
export interface SaverOptions {
  readonly machine?: Machine;
  /** Default: LangGraph's JSON serializer. */
  readonly serde?: SerializerProtocol;
}

/** Options of a saver in a file. */
export interface SqliteSaverOptions extends SaverOptions {
  /** What a saved step survives, default `power-loss`. */
  readonly survives?: Survives;
}

/** Opens a saver in one SQLite file; creates it if needed. In a cell, `state/langgraph.db` is part of its checkpoints. */
export function openSqliteSaver(path: string, options: SqliteSaverOptions = {}): LazarusSaver {
  const machine = options.machine ?? systemMachine;
  const rows = openSqliteRows(machine, path, options.survives);
  return new LazarusSaver(rows, machine.ids, options.serde);
}

/** Opens a saver in the database at `connection` (postgres://…); creates its tables if needed. */
export async function openPostgresSaver(
  connection: string,
  options: SaverOptions & PostgresOptions = {},
): Promise<LazarusSaver> {
  const machine = options.machine ?? systemMachine;
  return new LazarusSaver(await openPostgresRows(machine, connection, options), machine.ids, options.serde);
}

export { LazarusSaver } from "./saver.ts";
export type { PostgresOptions, Survives };
