// What LangGraph's suite does not cover: state of forked branches, concurrent writers, kills, and linear growth.
import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { AIMessage, HumanMessage } from "@langchain/core/messages";
import { END, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import {
  type LazarusSaver,
  openPostgresSaver,
  openSqliteSaver,
} from "../../src/integrations/langgraph/index.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { ARM, bundleProgram } from "../bundle.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";

let program: string;
let server: PostgresServer;
let directory: string;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-langgraph-"));
  [server, program] = await Promise.all([
    startPostgres(),
    bundleProgram(join(import.meta.dirname, "graph-program.ts")),
  ]);
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

/** A graph that adds one message per step, `steps` times. */
function chatter(saver: LazarusSaver, steps: number, text: (n: number) => string) {
  return new StateGraph(MessagesAnnotation)
    .addNode("talk", ({ messages }) => ({ messages: [new AIMessage(text(messages.length))] }))
    .addEdge(START, "talk")
    .addConditionalEdges("talk", ({ messages }) => (messages.length > steps ? END : "talk"))
    .compile({ checkpointer: saver });
}

const places = {
  SQLite: async () => {
    const path = join(mkdtempSync(join(directory, "s-")), "graph.db");
    return async () => openSqliteSaver(path);
  },
  PostgreSQL: async () => {
    const connection = await server.createDatabase();
    return () => openPostgresSaver(connection);
  },
};

describe.each(Object.entries(places))("saver on %s", (_, createPlace) => {
  test("two branches forked from one checkpoint read back their own state", async () => {
    const open = await createPlace();
    await using saver = await open();
    const graph = chatter(saver, 3, (n) => `said ${n}`);
    const thread = { configurable: { thread_id: "t" } };
    await graph.invoke({ messages: [new HumanMessage("go")] }, thread);
    const history = [];
    for await (const state of graph.getStateHistory(thread)) history.push(state);
    const fork = history.find(({ values }) => values.messages?.length === 2)!.config;
    const left = await graph.updateState(fork, { messages: [new AIMessage("left")] });
    const right = await graph.updateState(fork, { messages: [new AIMessage("right")] });
    // Opened again, with an empty cache.
    await using fresh = await open();
    const again = chatter(fresh, 3, (n) => `said ${n}`);
    const words = async (config: typeof left) =>
      (await again.getState(config)).values.messages.map(({ content }: { content: string }) => content);
    expect(await words(left)).toEqual(["go", "said 1", "left"]);
    expect(await words(right)).toEqual(["go", "said 1", "right"]);
    expect(await words(history[0]!.config)).toEqual(["go", "said 1", "said 2", "said 3"]);
  });

  test("twenty concurrent writers lose nothing", async () => {
    const open = await createPlace();
    const savers = await Promise.all(Array.from({ length: 4 }, open));
    const run = (i: number) =>
      chatter(savers[i % 4]!, 10, (n) => `thread ${i} says ${n}`).invoke(
        { messages: [new HumanMessage(`go ${i}`)] },
        { configurable: { thread_id: `t${i}` } },
      );
    await Promise.all(Array.from({ length: 20 }, (_, i) => run(i)));
    await using fresh = await open();
    for (let i = 0; i < 20; i += 1) {
      const { values } = await chatter(fresh, 10, String).getState({ configurable: { thread_id: `t${i}` } });
      expect(values.messages.length).toBe(11);
      expect(values.messages.at(-1).content).toBe(`thread ${i} says 10`);
    }
    for (const saver of savers) await saver[Symbol.asyncDispose]();
  });

  test("deleting a thread does not affect the others", async () => {
    const open = await createPlace();
    await using saver = await open();
    for (const thread_id of ["a", "b"]) {
      await chatter(saver, 5, String).invoke(
        { messages: [new HumanMessage("go")] },
        { configurable: { thread_id } },
      );
    }
    await saver.deleteThread("a");
    expect(await saver.getTuple({ configurable: { thread_id: "a" } })).toBeUndefined();
    expect(
      (await chatter(saver, 5, String).getState({ configurable: { thread_id: "b" } })).values.messages.length,
    ).toBe(6);
  });
});

describe("saver on PostgreSQL", () => {
  const start = (connection: string, crashAt?: string) =>
    new Promise<{ killed: boolean; output: string }>((resolve) => {
      const arm = crashAt === undefined ? [] : ["--import", ARM];
      const env = { ...process.env, ...(crashAt === undefined ? {} : { LAZARUS_CRASH_AT: crashAt }) };
      const child = spawn(process.execPath, [...arm, program, connection], {
        stdio: ["ignore", "pipe", "ignore"],
        env,
      });
      let output = "";
      child.stdout.on("data", (data) => {
        output += data;
      });
      child.once("close", (_, signal) => resolve({ killed: signal === "SIGKILL", output }));
    });
  const points = listCrashPoints(join(import.meta.dirname, "..", "..", "src"))
    .map(({ name }) => name)
    .filter((name) => name.startsWith("langgraph.") && !name.endsWith(".uncommitted"));

  test.each([...points, "langgraph.put.after#3"])(
    "killed at %s, the graph has every message once",
    async (point) => {
      const connection = await server.createDatabase();
      expect(await start(connection, point)).toMatchObject({ killed: true });
      expect(await start(connection)).toEqual({
        killed: false,
        output: "hello, gathered, thought, answered",
      });
    },
  );

  test("refuses a newer schema", async () => {
    const connection = await server.createDatabase();
    await (await openPostgresSaver(connection))[Symbol.asyncDispose]();
    const client = new pg.Client(connection);
    await client.connect();
    await client.query("UPDATE lazarus.room SET version = 99 WHERE name = 'langgraph'");
    await client.end();
    await expect(openPostgresSaver(connection)).rejects.toMatchObject({ code: "RUN_STORE_NEWER" });
  });

  test("continues after the server restarts in the middle of a graph", async () => {
    await using saver = await openPostgresSaver(await server.createDatabase());
    let back: Promise<void> | undefined;
    const graph = chatter(saver, 4, (n) => `said ${n}`);
    const stopping = new StateGraph(MessagesAnnotation)
      .addNode("stop", async () => {
        await server.stop();
        // Not before the saver has noticed that the server is gone.
        back = systemClock.sleep(300).then(() => server.start());
        return { messages: [new AIMessage("stopped")] };
      })
      .addEdge(START, "stop")
      .addEdge("stop", END)
      .compile({ checkpointer: saver });
    const thread = { configurable: { thread_id: "t" } };
    await stopping.invoke({ messages: [new HumanMessage("go")] }, thread);
    expect(back).toBeDefined();
    await back;
    await graph.invoke({ messages: [new HumanMessage("more")] }, thread);
    const { values } = await graph.getState(thread);
    expect(values.messages.map(({ content }: { content: string }) => content)).toEqual([
      "go",
      "stopped",
      "more",
      "said 3",
      "said 4",
    ]);
  });
});

describe("saver on SQLite", () => {
  // Incompressible, so that it is stored as a long body.
  const LONG = randomBytes(1500).toString("base64");
  const thread = (thread_id: string) => ({ configurable: { thread_id } });
  const go = { messages: [new HumanMessage("go")] };
  const fresh = () => join(mkdtempSync(join(directory, "s-")), "graph.db");
  const longBodies = (path: string) => {
    const database = new DatabaseSync(path);
    const { n } = database.prepare("SELECT count(*) AS n FROM long_body").get() as { n: number };
    database.close();
    return n;
  };

  test("reads and migrates the first schema", async () => {
    const path = fresh();
    {
      await using saver = openSqliteSaver(path);
      await chatter(saver, 4, (n) => `${LONG}${n}`).invoke(go, thread("t"));
    }
    const database = new DatabaseSync(path);
    for (const table of ["blob", "pending"]) {
      database.exec(
        `UPDATE ${table} SET body = (SELECT body FROM long_body WHERE id = long_id) WHERE long_id > 0`,
      );
      database.exec(`ALTER TABLE ${table} DROP COLUMN long_id`);
    }
    database.exec("DROP TABLE long_body; PRAGMA user_version = 1");
    database.close();
    await using saver = openSqliteSaver(path);
    const graph = chatter(saver, 8, (n) => `${LONG}${n}`);
    expect((await graph.getState(thread("t"))).values.messages.length).toBe(5);
    await graph.invoke({ messages: [new HumanMessage("more")] }, thread("t"));
    await using other = openSqliteSaver(path);
    const { values } = await chatter(other, 8, String).getState(thread("t"));
    expect(values.messages).toHaveLength(9);
  });

  test("removes all rows of a deleted thread and of a replaced write", async () => {
    const path = fresh();
    await using saver = openSqliteSaver(path);
    await chatter(saver, 4, () => LONG).invoke(go, thread("t"));
    const before = longBodies(path);
    expect(before).toBeGreaterThan(4);
    const tuple = (await saver.getTuple(thread("t")))!;
    const { checkpoint, metadata, parentConfig } = tuple;
    await saver.put(parentConfig!, checkpoint, metadata!, checkpoint.channel_versions);
    for (let i = 0; i < 3; i += 1) await saver.putWrites(tuple.config, [["messages", LONG]], "task");
    expect(longBodies(path)).toBe(before + 1);
    await saver.deleteThread("t");
    expect(longBodies(path)).toBe(0);
  });

  test.each([
    ["has no long bodies", "DELETE FROM long_body"],
    ["has a chain with a missing link", "DELETE FROM blob WHERE depth = 1"],
    ["has a circular chain", "UPDATE blob SET base = version WHERE depth > 0"],
    ["has bytes that cannot be decompressed", "UPDATE long_body SET body = x'01ffffff'"],
    ["has a checkpoint that is not JSON", "UPDATE checkpoint SET body = x'007b6f6f7073'"],
  ])("reports a file that %s", async (_, sql) => {
    const path = fresh();
    {
      await using saver = openSqliteSaver(path);
      await chatter(saver, 4, (n) => `${LONG}${n}`).invoke(go, thread("t"));
    }
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
    await using saver = openSqliteSaver(path);
    await expect(saver.getTuple(thread("t"))).rejects.toMatchObject({
      code: "RUN_STORE_DAMAGED",
      hint: expect.stringContaining("lazarus checkpoints"),
    });
  });

  test("refuses a newer schema or encoding", async () => {
    const path = fresh();
    {
      await using saver = openSqliteSaver(path);
      await chatter(saver, 2, () => LONG).invoke(go, thread("t"));
    }
    const change = (sql: string) => {
      const database = new DatabaseSync(path);
      database.exec(sql);
      database.close();
    };
    change("UPDATE checkpoint SET body = x'0901'");
    {
      await using saver = openSqliteSaver(path);
      await expect(saver.getTuple(thread("t"))).rejects.toMatchObject({ code: "RUN_STORE_NEWER" });
    }
    change("PRAGMA user_version = 99");
    const bytes = readFileSync(path);
    expect(() => openSqliteSaver(path)).toThrow(/schema 99/);
    expect(readFileSync(path).equals(bytes)).toBe(true);
  });

  test("with survives: kill, another process sees a step immediately", async () => {
    const path = fresh();
    await using saver = openSqliteSaver(path, { survives: "kill" });
    await chatter(saver, 3, (n) => `said ${n}`).invoke(go, thread("t"));
    await using other = openSqliteSaver(path);
    expect((await chatter(other, 3, String).getState(thread("t"))).values.messages.length).toBe(4);
  });
});

test("400 steps of 2 KB take at most 3 MB, and every step can be read", async () => {
  const path = join(mkdtempSync(join(directory, "s-")), "graph.db");
  const saver = openSqliteSaver(path);
  // Text that compresses like prose.
  let seed = 7;
  const word = () => {
    seed = (seed * 1103515245 + 12345) % 2 ** 31;
    return seed.toString(36);
  };
  const prose = () => Array.from({ length: 330 }, word).join(" ").slice(0, 2048);
  const thread = { configurable: { thread_id: "t" }, recursionLimit: 1000 };
  await chatter(saver, 400, prose).invoke({ messages: [new HumanMessage("go")] }, thread);
  await saver[Symbol.asyncDispose]();
  const again = openSqliteSaver(path);
  expect(await again.sizeBytes()).toBeLessThan(3_000_000);
  const state = await again.getTuple({ configurable: { thread_id: "t" } });
  expect((state!.checkpoint.channel_values.messages as unknown[]).length).toBe(401);
  const lengths = new Set<number>();
  for await (const { checkpoint } of again.list({ configurable: { thread_id: "t" } }, { limit: 25 })) {
    lengths.add((checkpoint.channel_values.messages as unknown[] | undefined)?.length ?? 0);
  }
  expect(lengths.size).toBe(25);
  await again[Symbol.asyncDispose]();
});
