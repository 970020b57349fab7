// PostgreSQL: the conformance suite on a real server, and server restarts in the middle of a run.
import { connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { jsonSchema } from "ai";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { systemClock } from "../../src/platform/clock.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { openPostgresPool } from "../../src/platform/postgres/pool.ts";
import { createExecutor } from "../../src/run/index.ts";
import { openPostgresJournal } from "../../src/run/journal/postgres.ts";
import { RUN_TABLES } from "../../src/run/journal/postgres-migrations.ts";
import { openPostgresRunStore } from "../../src/run/store/open-postgres.ts";
import { journalConformance } from "../../src/testing/journal-conformance.ts";
import { entryRow, headRow, journalWrite } from "../../src/testing/journal-rows.ts";
import { runStoreConformance } from "../../src/testing/run-store-conformance.ts";
import { type PostgresServer, SOCKET_NAME, startPostgres } from "./postgres-server.ts";
import { createScriptedModel } from "./scripted-model.ts";

let server: PostgresServer;
let shared: string;
let schemas = 0;
beforeAll(async () => {
  server = await startPostgres();
  shared = await server.createDatabase();
});
afterEach(() => vi.useRealTimers());
afterAll(async () => server?.[Symbol.asyncDispose]());

runStoreConformance({ describe, test }, "PostgreSQL", async () => {
  const schema = `s${++schemas}`;
  return {
    open: (options) => openPostgresRunStore(shared, { ...options, schema, maxConnections: 2 }),
    dispose: async () => {},
  };
});

test("a schema with the longest possible name", async () => {
  // pg prints a warning if the name of a statement is too long for the server.
  const warnings = vi.spyOn(console, "error");
  const schema = `s${"x".repeat(62)}`;
  await using store = await openPostgresRunStore(shared, { schema, maxConnections: 1 });
  const executor = createExecutor({ model: createScriptedModel(["done"]), store });
  expect(await executor.run({ id: "a" }, "go", { runId: "r" })).toMatchObject({ status: "completed" });
  expect((await store.load("r"))!.transcript.length).toBe(2);
  // Its channel is named after it.
  const { journal } = store.log;
  await journal.insert(headRow("waits"), []);
  expect(await journal.requestCancel("waits", 1)).toBe(true);
  expect(warnings).not.toHaveBeenCalled();
});

journalConformance({ describe, test }, "PostgreSQL", async () => {
  const schema = `j${++schemas}`;
  return {
    open: () => openPostgresJournal(systemMachine, shared, RUN_TABLES, { schema, maxConnections: 3 }),
    dispose: async () => {},
  };
});

describe("PostgreSQL run store", () => {
  test("twenty stores can open an empty database concurrently", async () => {
    const connection = await server.createDatabase();
    const stores = await Promise.all(
      Array.from({ length: 20 }, () => openPostgresRunStore(connection, { maxConnections: 1 })),
    );
    expect(await stores[0]!.list()).toEqual([]);
    for (const store of stores) await store[Symbol.asyncDispose]();
  });
  test("a write that fails does not make a run that was added at the same time count as taken", async () => {
    const schema = `j${++schemas}`;
    await using journal = await openPostgresJournal(systemMachine, shared, RUN_TABLES, { schema });
    expect(await Promise.all(["a", "b"].map((id) => journal.insert(headRow(id), [])))).toEqual([true, true]);
    const queued = { status: "queued", owner: null, epoch: 0, leaseUntilMs: 0 } as const;
    const write = (id: string, body: string) =>
      journal.write(journalWrite(id, 1, [entryRow(1, "response", 0, { body })]));
    const results = await Promise.allSettled([
      write("a", "PostgreSQL cannot store \u0000"),
      write("b", "{}"),
      ...["c", "d"].map((id) => journal.insert(headRow(id, queued), [])),
    ]);
    expect(results.map((each) => (each.status === "fulfilled" ? each.value : "failed"))).toEqual([
      ...["failed", "written", true, true],
    ]);
  });
  test("an unreachable server is named without its password", async () => {
    const failed = openPostgresRunStore("postgres://u:topsecret@127.0.0.1:1/x", { reconnectMs: 50 });
    await expect(failed).rejects.toMatchObject({ code: "RUN_STORE_UNREACHABLE" });
    await expect(failed).rejects.not.toThrow(/topsecret/);
  });
  test("a missing database is named, with the command that creates it", async () => {
    const elsewhere = (await server.createDatabase()).replace(/[^/]*$/, "nowhere");
    await expect(openPostgresRunStore(elsewhere)).rejects.toMatchObject({
      code: "NOT_FOUND",
      hint: expect.stringMatching(/^createdb .* nowhere$/),
    });
  });
  test("a frozen server times out, and the run continues when it is back", async () => {
    const connection = await server.createDatabase();
    await using wire = await openWire(connection);
    await using store = await openPostgresRunStore(wire.connection, { maxConnections: 2 });
    const model = createScriptedModel([
      async () => {
        wire.freeze();
        // Fake timers from here on, so that timeouts do not depend on the speed of the machine.
        vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
        return "an answer that cannot be saved";
      },
    ]);
    const executor = createExecutor({ model, store });
    let over = false;
    const running = executor.run({ id: "a" }, "go", { runId: "r" }).finally(() => {
      over = true;
    });
    while (!over) {
      await new Promise((resolve) => setImmediate(resolve));
      if (vi.isFakeTimers()) await vi.advanceTimersByTimeAsync(1000);
    }
    const result = await running;
    expect(result).toMatchObject({ status: "failed", error: { code: "RUN_STORE_UNREACHABLE" } });
    expect(result.warnings.join()).toContain("it will be resumed");
    vi.useRealTimers();
    wire.thaw();
    expect(await store.head("r")).toMatchObject({ status: "running" });
  });
  test("a run continues after the server restarts in the middle of it", async () => {
    const connection = await server.createDatabase();
    await using store = await openPostgresRunStore(connection);
    let sent = 0;
    let back: Promise<void> | undefined;
    const send = {
      inputSchema: jsonSchema<object>({ type: "object" }),
      effect: "once" as const,
      execute: async () => {
        sent += 1;
        await server.stop();
        // Not before the store has noticed that the server is gone.
        back = systemClock.sleep(300).then(() => server.start());
        return "sent";
      },
    };
    const model = createScriptedModel([{ calls: [{ tool: "send", input: {} }] }, "done"]);
    const executor = createExecutor({ model, store });
    const result = await executor.run({ id: "a", tools: { send } }, "go", { runId: "r" });
    await back;
    expect(result).toMatchObject({ status: "completed", warnings: [] });
    expect(sent).toBe(1);
    expect((await store.load("r"))?.transcript.length).toBe(4);
    expect(await store.effects("r")).toMatchObject([{ state: "done", attempts: 1 }]);
  });
  test("a transaction is retried when the server stops during it", async () => {
    const spec = { what: "a test", component: "test", migrations: [] };
    await using pool = await openPostgresPool(systemClock, await server.createDatabase(), spec);
    let tries = 0;
    const answer = await pool.inTransaction(async (client) => {
      tries += 1;
      if (tries === 1) {
        const gone = new Promise((resolve) => client.once("end", resolve));
        await server.stop();
        await gone;
        await server.start();
      }
      return (await client.query("SELECT 1 AS one")).rows;
    });
    expect(answer).toEqual([{ one: 1 }]);
    expect(tries).toBe(2);
  });
});

/** A proxy to the server that can stop forwarding without closing, as a frozen server or a lost network does. */
async function openWire(connection: string) {
  const to = new URL(connection);
  const sockets = new Set<Socket>();
  let frozen = false;
  const proxy = createServer((near) => {
    const far = connect(join(decodeURIComponent(to.hostname), SOCKET_NAME));
    for (const [from, into] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on("data", (data) => {
        if (!frozen) into.write(data);
      });
      from.on("error", () => {});
      from.on("close", () => into.destroy());
    }
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  const address = proxy.address();
  const port = typeof address === "object" && address !== null ? address.port : 0;
  return {
    connection: connection.replace(to.host, `127.0.0.1:${port}`),
    freeze: () => {
      frozen = true;
    },
    thaw: () => {
      frozen = false;
    },
    async [Symbol.asyncDispose]() {
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => proxy.close(resolve));
    },
  };
}
