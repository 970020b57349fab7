// Large bodies: a result of 50 MB on both databases, and writes that are larger than a statement may be.
import { rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type FlexibleSchema, isStepCount, jsonSchema, ToolLoopAgent, tool } from "ai";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import {
  durable,
  listRuns,
  openPostgresRunStore,
  openSqliteRunStore,
  type RunStore,
  showRun,
} from "../../src/run/index.ts";
import { openPostgresJournal } from "../../src/run/journal/postgres.ts";
import { RUN_TABLES } from "../../src/run/journal/postgres-migrations.ts";
import { entryRow, headRow, journalWrite } from "../../src/testing/journal-rows.ts";
import { call, script } from "./durable/models.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";

const SIZE = 50_000_000;
const path = join(tmpdir(), `lazarus-large-${process.pid}.db`);
let server: PostgresServer;
let connection: string;
beforeAll(async () => {
  server = await startPostgres();
  connection = await server.createDatabase();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  for (const end of ["", "-wal", "-shm"]) rmSync(path + end, { force: true });
});

const stores: [string, () => Promise<RunStore>][] = [
  ["SQLite", async () => openSqliteRunStore(path, { keepSecrets: true })],
  ["PostgreSQL", () => openPostgresRunStore(connection, { keepSecrets: true })],
];

describe.each(stores)("a result of 50 MB in %s", (_, open) => {
  const inputSchema = jsonSchema({ type: "object" }) as FlexibleSchema<Record<string, unknown>>;
  let calls = 0;
  const agentOn = (store: RunStore) => {
    const read = tool({
      inputSchema,
      execute: () => {
        calls += 1;
        return "x".repeat(SIZE);
      },
      toModelOutput: ({ output }) => ({ type: "text", value: `${String(output).length} characters` }),
    });
    const pay = tool({ inputSchema, needsApproval: true, execute: () => "paid" });
    const model = script([[call("read", {})], [call("pay", {})], "done"]);
    const agent = new ToolLoopAgent({ id: "reader", model, tools: { read, pay }, stopWhen: isStepCount(9) });
    return durable(agent, { store, recover: false });
  };

  test("is stored, replayed and followed; lists do not read it", { timeout: 60_000 }, async () => {
    calls = 0;
    {
      await using store = await open();
      const { content } = await agentOn(store).generate({ prompt: "go", runId: "r" });
      expect(content.at(-1)?.type).toBe("tool-approval-request");
    }
    await using store = await open();
    const readEntries = vi.spyOn(store.log.journal, "readEntries");
    const [summary] = await listRuns(store.log);
    expect(summary).toMatchObject({ runId: "r", status: "waiting", unknownEffects: 0 });
    expect(readEntries).not.toHaveBeenCalled();
    const agent = agentOn(store);
    // More than a NOTIFY can carry.
    await agent.send("r", "y".repeat(100_000), { id: "m" });
    await agent.approve("r", "r.2.1");
    const result = await agent.generate({ runId: "r" });
    expect([result.text, calls]).toEqual(["done", 1]);
    readEntries.mockClear();
    expect((await showRun(store.log, "r")).summary.status).toBe("completed");
    const followed = await agent.follow("r");
    let longest = 0;
    for await (const chunk of followed.toUIMessageStream())
      if (chunk.type === "tool-output-available") longest = Math.max(longest, String(chunk.output).length);
    expect(longest).toBe(SIZE);
  });
});

test("a large write to PostgreSQL is applied once and only by the owner, as a whole", async () => {
  await using journal = await openPostgresJournal(systemMachine, connection, RUN_TABLES, { schema: "large" });
  await journal.insert(headRow("r"), []);
  const entries = [1, 2, 3].map((step) => entryRow(step, "response", 0, { body: "z".repeat(2_000_000) }));
  const write = journalWrite("r", 1, entries, { head: { step: 3 } });
  expect(await journal.write({ ...write, epoch: 0 })).toBe("stale");
  expect(await journal.write({ ...write, seq: 2 })).toBe("out-of-order");
  expect(await journal.write({ ...write, runId: "x" })).toBe("missing");
  expect(await journal.readEntries("r")).toEqual([]);
  expect(await journal.write(write)).toBe("written");
  expect(await journal.write(write)).toBe("written");
  const stored = await journal.readEntries("r");
  expect(stored.map(({ step, body }) => [step, body!.length])).toEqual([1, 2, 3].map((n) => [n, 2_000_000]));
  expect(await journal.readHead("r")).toMatchObject({ seq: 1, step: 3 });
});
