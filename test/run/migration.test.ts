// Databases of earlier versions (test/golden/runs): their runs are moved into the journal when the store is opened. Finished ones
// are listed and shown, interrupted ones resume with their effects, phases and forks, and nothing is done twice.
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { jsonSchema } from "ai";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import { openDatabase } from "../../src/platform/sqlite.ts";
import {
  type Agent,
  createExecutor,
  type DurableTool,
  openPostgresRunStore,
  openSqliteRunStore,
  type RunStore,
  resumeRun,
} from "../../src/run/index.ts";
import { RUNS_DATABASE } from "../../src/run/journal/sqlite-migrations.ts";
import { readRunPositions } from "../../src/run/store/positions.ts";
import { ARM, bundleProgram } from "../bundle.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";
import { createScriptedModel, type Line } from "./scripted-model.ts";

const GOLDEN = join(import.meta.dirname, "..", "golden", "runs");
const KEY = new Uint8Array(32).fill(7);
const forks = JSON.parse(readFileSync(join(GOLDEN, "forks.json"), "utf8")) as Record<
  string,
  Record<string, string>
>;

let directory: string;
let server: PostgresServer;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-migration-"));
  server = await startPostgres();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

function copyOf(name: string): string {
  const path = join(mkdtempSync(join(directory, "s-")), "runs.db");
  copyFileSync(join(GOLDEN, `${name}.db`), path);
  return path;
}

async function postgresCopy(): Promise<string> {
  const connection = await server.createDatabase();
  const client = new pg.Client(connection);
  await client.connect();
  await client.query(readFileSync(join(GOLDEN, "postgres.sql"), "utf8").replaceAll("%", "lazarus"));
  await client.end();
  return connection;
}

const OPEN: Record<string, () => Promise<RunStore>> = {
  plain: async () => openSqliteRunStore(copyOf("plain")),
  sealed: async () => openSqliteRunStore(copyOf("sealed"), { encryptionKey: KEY }),
  mixed: async () => openSqliteRunStore(copyOf("mixed")),
  postgres: async () => openPostgresRunStore(await postgresCopy(), { maxConnections: 2 }),
};

const anything = jsonSchema<Record<string, unknown>>({ type: "object" });
const call = (tool: string, input: object = {}): Line => ({ calls: [{ tool, input }] });

/** Resumes a run, and returns its result and the calls that were made. */
async function resume(
  store: RunStore,
  runId: string,
  script: readonly Line[],
  tools: Record<string, Partial<DurableTool>>,
  more: Partial<Agent> = {},
) {
  const made: string[] = [];
  const wrapped = Object.entries(tools).map(([name, tool]) => {
    const execute: DurableTool["execute"] = (input, context) => {
      made.push(`${name} ${context.effectId} ${JSON.stringify(input)}`);
      return tool.execute?.(input, context) ?? `${name} done`;
    };
    return [name, { inputSchema: anything, ...tool, execute }];
  });
  const { agentId } = (await store.head(runId))!;
  const model = createScriptedModel(script);
  const executor = createExecutor({ model, store, defaults: { maxRetries: 0 } });
  const agent: Agent = { id: agentId, tools: Object.fromEntries(wrapped), ...more };
  const resumed = await resumeRun(executor, agent, runId);
  return { result: resumed?.result, made, asked: model.asked };
}

describe.each(Object.keys(OPEN))("a database of an earlier version (%s)", (name) => {
  let store: RunStore;
  beforeAll(async () => {
    store = await OPEN[name]!();
  });
  afterAll(() => store?.[Symbol.asyncDispose]());

  test("lists all runs with their status, and forks", async () => {
    const heads = new Map((await store.list()).map((head) => [head.runId, head.status]));
    expect(heads.get("completed")).toBe("completed");
    expect(heads.get("failed")).toBe("failed");
    expect(heads.get("parked")).toBe("needs-human");
    expect(heads.get("phased")).toBe("running");
    expect(heads.has("stubbed")).toBe(false);
    expect((await store.head(forks[name]!["fork-of-completed"]!))?.forkOf).toBe("completed");
  });

  test("shows a finished run with its transcript, ledger and info", async () => {
    const record = (await store.load("completed"))!;
    const roles = record.transcript.map(({ step, message }) => `${step} ${message.role}`);
    expect(roles).toEqual([
      ...["0 user", "1 assistant", "1 tool", "2 assistant", "2 tool", "3 assistant", "3 tool"],
      ...["4 assistant", "4 tool", "5 assistant"],
    ]);
    expect(record.output).toBe("all sent");
    expect(record.info).toMatchObject({ agentName: "Mailer", callerId: "me", inputs: { file: "x" } });
    expect(record.head.usage).toEqual({ inputTokens: 50, outputTokens: 25 });
    expect(record.effects.map(({ id, tool, state }) => [id, tool, state])).toEqual([
      ["completed.1.0", "look", "done"],
      ["completed.2.0", "send", "done"],
      ["completed.2.1", "send", "done"],
      ["completed.3.0", "fail", "failed"],
      ["completed.4.0", "nope", "failed"],
    ]);
    expect(JSON.stringify(record.transcript)).toContain("sent to berta");
    const picture = (await store.load("picture"))!.transcript[0]!.message.content;
    expect(picture).toMatchObject([{ text: "what is it?" }, { image: new Uint8Array([1, 2, 3]) }]);
    expect((await store.load("failed"))?.error?.message).toContain("503 from the provider");
    const nudged = (await store.history("nudged")).map(({ message }) => message.role);
    expect(nudged).toEqual(["user", "assistant", "tool", "user", "assistant"]);
  });

  test.each([
    ["read", "completed", 1],
    ["idempotent", "completed", 1],
    ["once", "needs-human", 0],
    ["reconcile", "completed", 0],
  ] as const)("a run that was interrupted in a %s call", async (effect, status, times) => {
    const reconcile = () => ({ outcome: "done" as const, output: "was there" });
    const act = { effect, reconcile };
    const look = { effect: "read" as const };
    const script = [call("look"), call("act", { n: 7 }), "end"];
    const { result, made, asked } = await resume(store, `running-${effect}`, script, { act, look });
    expect([result?.status, made.length, asked]).toEqual([status, times, status === "completed" ? 1 : 0]);
    if (times === 1) expect(made[0]).toBe(`act running-${effect}.2.0 {"n":7}`);
    if (status === "completed") expect(result).toMatchObject({ output: "end", steps: 3 });
    else expect(result?.unknownEffects).toMatchObject([{ id: "running-once.2.0" }]);
  });

  test("a run that had only started", async () => {
    const { result } = await resume(store, "running-begun", ["end"], {});
    expect(result).toMatchObject({ status: "completed", output: "end", steps: 1 });
  });

  test("a parked run keeps what its tool said, and a human's decision", async () => {
    const [effect] = await store.effects("parked");
    // The first version did not keep the tool's message.
    const error =
      name === "mixed" ? "timed out after the request went out" : "it was started and its outcome is unknown";
    expect(effect).toMatchObject({ state: "unknown", error });
    const script = [call("send", { to: "anna" }), "end"];
    await store.resolve("parked.1.0", { outcome: "retry" });
    const again = await resume(store, "parked", script, { send: {} });
    expect([again.result?.status, again.made]).toEqual(["completed", ['send parked.1.0 {"to":"anna"}']]);
    const decided = await resume(store, "parked-resolved", script, { send: {} });
    expect([decided.result?.status, decided.made]).toEqual(["completed", []]);
    expect(JSON.stringify(await store.history("parked-resolved"))).toContain("it went through");
  });

  test("phases: finished ones are skipped, the interrupted one continues at its own step", async () => {
    const phases = ["plan", "work", "work"].map((each, i) => ({ name: each, prompt: `${each} ${i}` }));
    const tools = { look: { effect: "read" as const, execute: () => 3 } };
    const { result, made, asked } = await resume(store, "phased", [call("look"), "out"], tools, { phases });
    expect(result).toMatchObject({ status: "completed", output: "out", steps: 6 });
    expect([made.length, asked]).toEqual([1, 1]);
    const record = (await store.load("phased"))!;
    expect(record.phases.map(({ position, name: phase }) => [position, phase])).toEqual([
      [0, "plan"],
      [1, "work"],
      [2, "work"],
    ]);
    const prompts = record.transcript.filter(({ message }) => message.role === "user");
    expect(prompts.map(({ phase, message }) => [phase, message.content])).toEqual([
      [-1, "the input"],
      [0, "make a plan"],
      [1, "first\n\n## plan\nout"],
      [2, "second\n\n## plan\nout\n\n## work\nout"],
    ]);
    const begun = await resume(store, "phased-begun", ["end"], {}, { phases: phases.slice(0, 1) });
    expect(begun.result).toMatchObject({ status: "completed", output: "end" });
  });

  test("a call whose input was redacted is not made from the record", async () => {
    const script = [call("push", { token: "x" }), "I ask again"];
    const { result, made } = await resume(store, "redacted", script, { push: {} });
    expect([result?.status, result?.output, made]).toEqual(["completed", "I ask again", []]);
    expect(JSON.stringify(await store.history("redacted"))).toContain("repeat it if it is still needed");
  });

  test("forks share the steps of their original, even of a stub, and repeat nothing", async () => {
    const send = { execute: ({ to }: Record<string, unknown>) => `sent to ${to}` };
    const more = [call("look"), call("send"), call("send", { to: "dora" }), "ok"];
    const forked = await resume(store, forks[name]!["fork-of-completed"]!, more, { send, look: {} });
    expect(forked.result).toMatchObject({ status: "completed", output: "ok", steps: 4 });
    expect(forked.made).toEqual([`send ${forks[name]!["fork-of-completed"]}.3.0 {"to":"dora"}`]);
    const stub = await resume(store, forks[name]!["fork-of-stub"]!, [call("send"), "thanks"], { send });
    expect([stub.result?.status, stub.made]).toEqual(["completed", []]);
    const again = await store.fork("completed", 1);
    expect((await store.history(again.runId)).length).toBe(3);
    expect((await store.prune({ olderThanMs: 0 })).removed).toContain("completed");
    expect((await store.history(again.runId)).length).toBe(3);
  });
});

describe("the move", () => {
  const rowsOf = (path: string) => {
    const database = new DatabaseSync(path);
    const rows = database
      .prepare("SELECT key, step, kind, call, state, body FROM entry ORDER BY 1, 2, 3, 4")
      .all();
    const old = database
      .prepare("SELECT count(*) AS n FROM sqlite_schema WHERE name IN ('message', 'effect', 'phase')")
      .get();
    database.close();
    return { rows, old: old?.n };
  };

  test("by two concurrent processes moves every row once", async () => {
    const path = copyOf("plain");
    const stores = [openSqliteRunStore(path), openSqliteRunStore(path)];
    const lists = await Promise.all(stores.map((store) => store.list()));
    expect(lists[0]!.length).toBe(lists[1]!.length);
    for (const store of stores) await store[Symbol.asyncDispose]();
    const alone = copyOf("plain");
    await using store = openSqliteRunStore(alone);
    await store.list();
    expect(rowsOf(path)).toEqual(rowsOf(alone));
    expect(rowsOf(path).old).toBe(0);
  });

  test("by several concurrent processes, of more runs than one batch, loses none in PostgreSQL", async () => {
    const connection = await postgresCopy();
    const client = new pg.Client(connection);
    await client.connect();
    await client.query(`SET search_path = lazarus;
      INSERT INTO run (id, agent_id, format, created_ms, info)
        SELECT 'more-' || n, 'a', 1, 1, '{"runId":"more-' || n || '"}' FROM generate_series(1, 300) AS n;
      INSERT INTO head (key, status, epoch, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms)
        SELECT key, 'completed', 1, 0, 1, 0, 0, 0, 0, 0, 1 FROM run WHERE id LIKE 'more-%';
      INSERT INTO message (key, seq, step, phase, body)
        SELECT key, 0, 0, 0, '{"role":"user","content":"go"}' FROM run WHERE id LIKE 'more-%'`);
    const open = () => openPostgresRunStore(connection, { maxConnections: 1 });
    const stores = await Promise.all(Array.from({ length: 6 }, open));
    const { rows } = await client.query("SELECT count(*)::int AS n FROM entry WHERE body LIKE '%\"go\"%'");
    expect(rows[0].n).toBeGreaterThanOrEqual(300);
    const old = await client.query("SELECT count(*)::int AS n FROM run WHERE format = 1");
    expect(old.rows[0].n).toBe(0);
    expect((await stores[5]!.load("more-300"))?.transcript.length).toBe(1);
    for (const store of stores) await store[Symbol.asyncDispose]();
    await client.end();
  });

  test.each([1, 4, 12])("continues after a kill after batch %i", async (nth) => {
    const [path, alone] = [copyOf("plain"), copyOf("plain")];
    const program = await bundleProgram(join(import.meta.dirname, "recover-program.ts"));
    const killed = spawnSync(process.execPath, ["--import", ARM, program, path], {
      env: { ...process.env, LAZARUS_CRASH_AT: `engine.migrate.sqlite#${nth}` },
    });
    expect(killed.signal).toBe("SIGKILL");
    for (const each of [path, alone]) {
      await using store = openSqliteRunStore(each);
      await store.list();
    }
    expect(rowsOf(path)).toEqual(rowsOf(alone));
  });

  test("needs no key, and changes no text", async () => {
    const path = copyOf("sealed");
    await using store = openSqliteRunStore(path);
    expect((await store.list()).length).toBeGreaterThan(10);
    await expect(store.load("completed")).rejects.toMatchObject({ code: "RUN_KEY_WRONG" });
    await using keyed = openSqliteRunStore(path, { encryptionKey: KEY });
    expect((await keyed.load("completed"))?.output).toBe("all sent");
    await using wrong = openSqliteRunStore(path, { encryptionKey: new Uint8Array(32).fill(8) });
    await expect(wrong.load("completed")).rejects.toMatchObject({ code: "RUN_KEY_WRONG" });
  });

  test("refuses a process of the older version that still executes the run", async () => {
    const path = copyOf("plain");
    const before = new DatabaseSync(path);
    const epochs = before.prepare("SELECT id, epoch FROM run JOIN head USING (key) ORDER BY id").all();
    before.close();
    await using store = openSqliteRunStore(path);
    for (const { id, epoch } of epochs) {
      const head = await store.log.journal.readHead(String(id));
      expect(head?.epoch).toBe(Number(epoch) + 1);
    }
  });

  test("is refused by an older version with a clear message", async () => {
    const path = copyOf("plain");
    await using store = openSqliteRunStore(path);
    await store.list();
    const migrations = RUNS_DATABASE.migrations.slice(0, 3);
    expect(() => openDatabase(systemMachine, path, { ...RUNS_DATABASE, migrations })).toThrow(
      /has schema \d+; this version of Lazarus supports up to 3/,
    );
  });

  test("of a large database does not stop the event loop", async () => {
    const path = copyOf("plain");
    const database = new DatabaseSync(path);
    database.exec(`
      INSERT INTO run (key, id, agent_id, format, created_ms, info)
        SELECT 1000, 'large', agent_id, 1, created_ms, replace(info, '"completed"', '"large"') FROM run WHERE id = 'completed';
      INSERT INTO head (key, status, epoch, lease_until_ms, seq, step, phase, redactions, input_tokens, output_tokens, updated_ms)
        VALUES (1000, 'completed', 1, 0, 20001, 20000, 0, 0, 0, 0, 1);
      INSERT INTO message (id, step, phase, body)
        WITH RECURSIVE i (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM i WHERE n < 20000)
        SELECT 1000 * 4194304 + n, n, 0, json_object('role', iif(n = 0, 'user', 'assistant'), 'content', 'step ' || n) FROM i`);
    database.close();
    await using store = openSqliteRunStore(path);
    let turns = 0;
    let isOver = false;
    const turn = () => {
      turns += 1;
      if (!isOver) setImmediate(turn);
    };
    turn();
    const record = await store.load("large");
    isOver = true;
    expect(record?.transcript.length).toBe(20_001);
    // One at least between two batches of 200 messages.
    expect(turns).toBeGreaterThan(100);
  });

  test("leaves the positions of runs readable before and after", async () => {
    const cell = mkdtempSync(join(directory, "cell-"));
    mkdirSync(join(cell, "state"));
    copyFileSync(join(GOLDEN, "plain.db"), join(cell, "state", "runs.db"));
    const before = readRunPositions(cell);
    expect(before.find(({ runId }) => runId === "running-once")).toMatchObject({
      step: 2,
      unknownEffects: 1,
    });
    {
      await using store = openSqliteRunStore(join(cell, "state", "runs.db"));
      await store.list();
    }
    expect(readRunPositions(cell)).toEqual(before);
  });
});
