// PostgreSQL: the exported suite on a real server, and what only a server can do: stop in the middle.
import { jsonSchema } from "ai";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createCheckpointer, createExecutor } from "../../src/run/index.ts";
import { openPostgresRunStore } from "../../src/run/stores/postgres.ts";
import { runStoreConformance } from "../../src/testing/run-store-conformance.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";
import { createScriptedModel } from "./scripted-model.ts";

let server: PostgresServer;
let shared: string;
let schemas = 0;
beforeAll(async () => {
  server = await startPostgres();
  shared = await server.createDatabase();
}, 60_000);
afterAll(async () => server?.[Symbol.asyncDispose]());

runStoreConformance({ describe, test }, "PostgreSQL", async () => {
  const schema = `s${++schemas}`;
  return {
    open: (options) => openPostgresRunStore(shared, { ...options, schema, maxConnections: 2 }),
    dispose: async () => {},
  };
});

describe("PostgreSQL run store", () => {
  test("a newer schema is refused in plain words and not touched", async () => {
    const connection = await server.createDatabase();
    await (await openPostgresRunStore(connection))[Symbol.asyncDispose]();
    const { default: pg } = await import("pg");
    const client = new pg.Client(connection);
    await client.connect();
    await client.query("UPDATE lazarus.room SET version = 99");
    await expect(openPostgresRunStore(connection)).rejects.toMatchObject({ code: "RUN_STORE_NEWER" });
    await client.end();
  });
  test("twenty processes can open an empty database at once", async () => {
    const connection = await server.createDatabase();
    const stores = await Promise.all(
      Array.from({ length: 20 }, () => openPostgresRunStore(connection, { maxConnections: 1 })),
    );
    expect(await stores[0]!.list()).toEqual([]);
    for (const store of stores) await store[Symbol.asyncDispose]();
  });
  test("a server that cannot be reached is named without its password", async () => {
    const failed = openPostgresRunStore("postgres://u:topsecret@127.0.0.1:1/x", { reconnectMs: 50 });
    await expect(failed).rejects.toMatchObject({ code: "RUN_STORE_UNREACHABLE" });
    await expect(failed).rejects.not.toThrow(/topsecret/);
  });
  test("a server that stops and starts in the middle of a run costs time and nothing else", async () => {
    const connection = await server.createDatabase();
    await using store = await openPostgresRunStore(connection);
    let sent = 0;
    const send = {
      inputSchema: jsonSchema<object>({ type: "object" }),
      effect: "once" as const,
      execute: async () => {
        sent += 1;
        await server.stop();
        setTimeout(() => void server.start(), 300);
        return "sent";
      },
    };
    const model = createScriptedModel([{ calls: [{ tool: "send", input: {} }] }, "done"]);
    const executor = createExecutor({ model, ports: { checkpointer: createCheckpointer(store) } });
    const result = await executor.run({ id: "a", tools: { send } }, "go", { runId: "r" });
    expect(result).toMatchObject({ status: "completed", warnings: [] });
    expect(sent).toBe(1);
    expect((await store.load("r"))?.transcript.length).toBe(4);
    expect(await store.effects("r")).toMatchObject([{ state: "done", attempts: 1 }]);
  });
});
