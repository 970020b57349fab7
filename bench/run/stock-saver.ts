// LangGraph's own SQLite saver, installed into bench/.work when needed: as a dependency, every clone would need a compiler
// and two minutes for its native binding. It runs unchanged on Node's SQLite behind the few better-sqlite3 calls it uses,
// with the durability that better-sqlite3 compiles in for WAL (synchronous=NORMAL: no fsync at commit, unlike ours).
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { pathToFileURL } from "node:url";
import type { BaseCheckpointSaver } from "@langchain/langgraph-checkpoint";

const PEERS = join(import.meta.dirname, "..", ".work", "peers-langgraph");
const PACKAGE = "@langchain/langgraph-checkpoint-sqlite";
const VERSION = "1.0.4";

/** `durable` makes it sync at commit, as ours does; by default it runs as shipped. */
export async function openStockSaver(path: string, durable = false): Promise<BaseCheckpointSaver> {
  const entry = join(PEERS, "node_modules", PACKAGE, "dist", "index.js");
  if (!existsSync(entry)) {
    mkdirSync(PEERS, { recursive: true });
    writeFileSync(join(PEERS, "package.json"), '{ "private": true }\n');
    const packages = [`${PACKAGE}@${VERSION}`, "@langchain/core@1", "@langchain/langgraph-checkpoint@1"];
    const quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
    execFileSync("npm", ["install", ...quiet, ...packages], {
      cwd: PEERS,
      stdio: ["ignore", "ignore", "inherit"],
    });
  }
  const { SqliteSaver } = await import(pathToFileURL(entry).href);
  return new SqliteSaver(asBetterSqlite(path, durable ? "FULL" : "NORMAL"));
}

function asBetterSqlite(path: string, synchronous: "FULL" | "NORMAL"): object {
  const database = new DatabaseSync(path);
  database.exec(`PRAGMA synchronous = ${synchronous}`);
  return {
    pragma: (text: string) => database.exec(`PRAGMA ${text}`),
    exec: (sql: string) => database.exec(sql),
    prepare(sql: string) {
      const statement = database.prepare(sql);
      const bind = (values: unknown[]) => values.map((value) => value ?? null) as never[];
      return {
        run: (...values: unknown[]) => statement.run(...bind(values)),
        get: (...values: unknown[]) => statement.get(...bind(values)),
        all: (...values: unknown[]) => statement.all(...bind(values)),
      };
    },
    transaction:
      <A extends unknown[]>(work: (...args: A) => unknown) =>
      (...args: A) => {
        database.exec("BEGIN");
        const result = work(...args);
        database.exec("COMMIT");
        return result;
      },
  };
}
