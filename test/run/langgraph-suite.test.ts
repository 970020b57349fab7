// LangGraph's own conformance suite: 718 tests of validate and 8 of deltaChannelHistoryTests, on both databases.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { deltaChannelHistoryTests, validate } from "@langchain/langgraph-checkpoint-validation";
import pg from "pg";
import * as vitest from "vitest";
import {
  type LazarusSaver,
  openPostgresSaver,
  openSqliteSaver,
} from "../../src/integrations/langgraph/index.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";

// The suite uses Vitest's globals.
Object.assign(globalThis, vitest);

let directory: string;
const sqlite = {
  checkpointerName: "lazarus on SQLite",
  beforeAll() {
    directory = mkdtempSync(join(tmpdir(), "lazarus-langgraph-"));
  },
  afterAll: () => rmSync(directory, { recursive: true, force: true }),
  createCheckpointer: () => openSqliteSaver(join(mkdtempSync(join(directory, "s-")), "graph.db")),
  destroyCheckpointer: (saver: LazarusSaver) => saver[Symbol.asyncDispose](),
};
let server: PostgresServer;
let connection: string;
let cleaner: pg.Client;
const postgres = {
  checkpointerName: "lazarus on PostgreSQL",
  async beforeAll() {
    server = await startPostgres();
    connection = await server.createDatabase();
    cleaner = new pg.Client(connection);
    await cleaner.connect();
  },
  beforeAllTimeout: 10 * 60_000,
  async afterAll() {
    await cleaner.end();
    await server[Symbol.asyncDispose]();
  },
  createCheckpointer: () => openPostgresSaver(connection, { maxConnections: 2 }),
  async destroyCheckpointer(saver: LazarusSaver) {
    await saver[Symbol.asyncDispose]();
    await cleaner.query("DELETE FROM lazarus.graph_checkpoint");
    await cleaner.query("DELETE FROM lazarus.graph_blob");
    await cleaner.query("DELETE FROM lazarus.graph_write");
  },
};

for (const initializer of [sqlite, postgres]) {
  validate(initializer as never);
  deltaChannelHistoryTests(initializer as never);
}

vitest.test("none of the 726 tests is missing or skipped", ({ task }) => {
  const count = (each: vitest.RunnerTask): number =>
    each.type === "suite"
      ? each.tasks.reduce((sum, below) => sum + count(below), 0)
      : each.mode === "run"
        ? 1
        : 0;
  const others = task.file.tasks.filter((each) => each !== task);
  vitest.expect(others.reduce((sum, each) => sum + count(each), 0)).toBe(2 * 726);
});
