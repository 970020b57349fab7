// Faults of a store: full disk, rows of a newer version, damage, two hosts that boot at once. Each ends in a clear error,
// and nothing is overwritten or done twice.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import {
  type Agent,
  createExecutor,
  openPostgresRunStore,
  openSqliteRunStore,
  type RunStore,
  type RunStoreOptions,
  recoverInterrupted,
  resumeRun,
  ShutdownError,
} from "../../src/run/index.ts";
import { createMemoryJournal } from "../../src/run/journal/sqlite.ts";
import { choosePrunable } from "../../src/run/operations/prune.ts";
import { createRunStore } from "../../src/run/store/store.ts";
import { bundleProgram } from "../bundle.ts";
import { tool } from "./bench.ts";
import { type PostgresServer, startPostgres } from "./postgres-server.ts";
import { createScriptedModel, type Line } from "./scripted-model.ts";

const PROGRAM = await bundleProgram(join(import.meta.dirname, "recover-program.ts"));

/** An empty store, and access to its rows. */
interface Place {
  readonly name: string;
  /** Path or connection string, for the booting host. */
  readonly address: string;
  open(options?: RunStoreOptions): Promise<RunStore>;
  change(sql: string): Promise<void>;
}

let directory: string;
let server: PostgresServer;
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-faults-"));
  server = await startPostgres();
});
afterAll(async () => {
  await server?.[Symbol.asyncDispose]();
  rmSync(directory, { recursive: true, force: true });
});

function sqlitePlace(): Place {
  const path = join(mkdtempSync(join(directory, "s-")), "runs.db");
  return {
    name: "sqlite",
    address: path,
    open: async (options) => openSqliteRunStore(path, options),
    async change(sql) {
      const database = new DatabaseSync(path);
      database.exec(sql);
      database.close();
    },
  };
}

async function postgresPlace(): Promise<Place> {
  const connection = await server.createDatabase();
  return {
    name: "postgres",
    address: connection,
    open: (options) => openPostgresRunStore(connection, { ...options, maxConnections: 4 }),
    async change(sql) {
      const client = new pg.Client(connection);
      await client.connect();
      await client.query(`SET search_path = lazarus; ${sql}`);
      await client.end();
    },
  };
}

function executorOn(store: RunStore, script: readonly Line[] = ["end"]) {
  return createExecutor({ model: createScriptedModel(script), store });
}

async function interruptedRuns(store: RunStore, count: number) {
  const executor = executorOn(store);
  await executor.shutdown();
  for (let i = 0; i < count; i += 1) await executor.run({ id: "a" }, "go", { runId: `r${i}` });
}

/** SQL that copies run n0 as n<first> … n<end - 1>. */
function copyRun(first: number, end: number): string {
  const source = "(SELECT key FROM run WHERE id = 'n0')";
  const head =
    "status, epoch, owner, lease_until_ms, seq, step, phase, messages, redactions, input_tokens, output_tokens, updated_ms, output, error";
  const entry = "step, kind, call, seq, state, attempts, redacted, body";
  return `
    INSERT INTO run (id, agent_id, format, created_ms, info)
      WITH RECURSIVE i (n) AS (SELECT ${first} UNION ALL SELECT n + 1 FROM i WHERE n + 1 < ${end})
      SELECT 'n' || n, agent_id, format, created_ms, replace(info, '"n0"', '"n' || n || '"')
      FROM i, run WHERE run.id = 'n0';
    INSERT INTO head (key, ${head})
      SELECT copy.key, ${head} FROM run AS copy, head
      WHERE head.key = ${source} AND copy.key NOT IN (SELECT key FROM head);
    INSERT INTO entry (key, ${entry})
      SELECT copy.key, ${entry} FROM run AS copy, entry
      WHERE entry.key = ${source} AND copy.key NOT IN (SELECT key FROM entry);`;
}

interface RecoveredRun {
  readonly runId: string;
  readonly how: string;
  readonly status?: string;
  readonly warnings?: string[];
}

function boot(address: string, text = "end", shell = ""): Promise<RecoveredRun[]> {
  const command = `${shell}exec "$@"`;
  const child = spawn("bash", ["-c", command, "boot", process.execPath, PROGRAM, address, text], {
    stdio: ["ignore", "pipe", "ignore"],
  });
  let out = "";
  child.stdout.on("data", (data) => {
    out += data;
  });
  return new Promise((resolve, reject) =>
    child.once("close", (code, signal) =>
      code === 0
        ? resolve(JSON.parse(out))
        : reject(new Error(`the host ended with ${code ?? signal}: ${out}`)),
    ),
  );
}

describe.each(["SQLite", "PostgreSQL"])("faults on %s", (kind) => {
  let place: Place;
  beforeEach(async () => {
    place = kind === "SQLite" ? sqlitePlace() : await postgresPlace();
  });

  test("two hosts that boot at the same time resume every run once", async () => {
    {
      await using store = await place.open();
      await interruptedRuns(store, 40);
    }
    const both = (await Promise.all([boot(place.address), boot(place.address)])).flat();
    const resumed = both.filter(({ how }) => how === "resumed");
    expect(resumed.every(({ status }) => status === "completed")).toBe(true);
    expect(resumed.map(({ runId }) => runId).sort()).toEqual(
      Array.from({ length: 40 }, (_, i) => `r${i}`).sort(),
    );
  });

  const INPUT = (messages: string) =>
    `{"input":{"mode":"generate","call":{"messages":${messages}},"phase":0}}`;
  test.each([
    ["a response that is not JSON", "UPDATE entry SET body = '{oops' WHERE kind = 'response'"],
    ["a response of the wrong type", "UPDATE entry SET body = '7' WHERE kind = 'response'"],
    [
      "an input of an unknown role",
      `UPDATE entry SET body = '${INPUT('[{"role":"king","content":"x"}]')}' WHERE kind = 'input'`,
    ],
    [
      "an input without content",
      `UPDATE entry SET body = '${INPUT('[{"role":"user"}]')}' WHERE kind = 'input'`,
    ],
    [
      "an input with invalid parts",
      `UPDATE entry SET body = '${INPUT('[{"role":"user","content":[null]}]')}' WHERE kind = 'input'`,
    ],
    ["a missing response", "DELETE FROM entry WHERE kind = 'response' AND step = 1"],
    ["a missing input", "DELETE FROM entry WHERE kind = 'input'"],
    ["info that is not JSON", "UPDATE run SET info = ''"],
    ["info of another run", `UPDATE run SET info = '{"runId":"other"}'`],
    ["an effect in an unknown state", "UPDATE entry SET state = 'maybe' WHERE kind = 'effect'"],
    ["an effect of an unknown class", "UPDATE entry SET class = 'twice' WHERE kind = 'effect'"],
    ["an invalid phase output", "UPDATE entry SET body = '7' WHERE kind = 'phase'"],
    ["a run that is forked from itself", "UPDATE run SET fork_of = id, fork_step = 1"],
  ])("%s is reported as damage, the lease is released, and nothing is written", async (_, sql) => {
    await using store = await place.open();
    const down = new AbortController();
    const stop = () => {
      down.abort(new ShutdownError());
      return "never sent";
    };
    const phases = [
      { name: "p", prompt: "p" },
      { name: "q", prompt: stop },
    ];
    const agent: Agent = { id: "a", phases, tools: { send: tool("once", () => 1) } };
    const script: Line[] = [{ calls: [{ tool: "send", input: { n: 1 } }] }, "out"];
    await executorOn(store, script).run(agent, "go", { runId: "r0", signal: down.signal });
    const before = await store.head("r0");
    expect(before).toMatchObject({ status: "running", owner: null, step: 2, phase: 1 });
    await place.change(sql);
    await expect(store.load("r0")).rejects.toMatchObject({
      code: "RUN_DAMAGED",
      message: expect.stringContaining("r0"),
      hint: expect.stringContaining("checkpoint"),
    });
    const recovered = await recoverInterrupted(executorOn(store), { agentFor: () => agent });
    expect(recovered).toMatchObject([{ how: "skipped", reason: expect.stringMatching(/r0/) }]);
    const { messageCount, step } = before!;
    expect(await store.head("r0")).toMatchObject({ status: "running", owner: null, messageCount, step });
    expect((await store.listInterrupted()).length).toBe(1);
  });

  test("swapped rows are refused by the seal", async () => {
    const encryptionKey = new Uint8Array(32).fill(1);
    await using store = await place.open({ encryptionKey });
    const executor = executorOn(store, ["secret answer"]);
    await executor.run({ id: "a" }, "secret question", { runId: "r0" });
    await executor.run({ id: "a" }, "another", { runId: "r1" });
    const other = "(SELECT body FROM entry AS other WHERE other.kind = 'response' ORDER BY key DESC LIMIT 1)";
    await place.change(`UPDATE entry SET body = ${other} WHERE kind = 'response'`);
    await expect(store.load("r0")).rejects.toMatchObject({ code: "RUN_KEY_WRONG" });
  });

  test("a wrong key is reported, and runs of the old key are not changed", async () => {
    const old = new Uint8Array(32).fill(1);
    {
      await using store = await place.open({ encryptionKey: old });
      await interruptedRuns(store, 1);
    }
    {
      await using store = await place.open({ encryptionKey: new Uint8Array(32).fill(2) });
      const recovered = await recoverInterrupted(executorOn(store), { agentFor: () => ({ id: "a" }) });
      expect(recovered).toMatchObject([{ how: "skipped", reason: expect.stringContaining("wrong key") }]);
      await expect(store.fork("r0", 0)).rejects.toMatchObject({
        hint: expect.stringContaining("LAZARUS_RUN_KEY"),
      });
    }
    await using store = await place.open({ encryptionKey: old });
    const [resumed] = await recoverInterrupted(executorOn(store), { agentFor: () => ({ id: "a" }) });
    expect(resumed).toMatchObject({ how: "resumed", result: { status: "completed" } });
  });

  test("a newer schema is refused before anything is written", async () => {
    {
      await using store = await place.open();
      await interruptedRuns(store, 1);
    }
    const raise = kind === "SQLite" ? "PRAGMA user_version = 99" : "UPDATE room SET version = 99";
    await place.change(raise);
    const bytes = kind === "SQLite" ? readFileSync(place.address) : undefined;
    await expect(place.open()).rejects.toMatchObject({
      code: "RUN_STORE_NEWER",
      message: expect.stringContaining("schema 99"),
      hint: expect.stringContaining("upgrade"),
    });
    if (bytes !== undefined) expect(readFileSync(place.address).equals(bytes)).toBe(true);
  });

  test("many runs are listed, found and pruned", async () => {
    // More than the 1,000 that lists show by default. Most are copies of the first row: only rows are needed here.
    const MANY = 1200;
    const EXECUTED = 100;
    await using store = await place.open({ keepSecrets: true });
    const executor = executorOn(store);
    const runs = Array.from({ length: EXECUTED }, (_, i) =>
      executor.run({ id: "a" }, "go", { runId: `n${i}` }),
    );
    const results = await Promise.all(runs);
    expect(results.filter(({ status, warnings }) => status !== "completed" || warnings.length > 0)).toEqual(
      [],
    );
    await place.change(copyRun(EXECUTED, MANY));
    expect((await store.list()).length).toBe(MANY);
    expect((await store.list({ limit: 5 })).length).toBe(5);
    const fork = await store.fork("n7", 1);
    expect((await store.prune({ olderThanMs: 0, keepLast: 10 })).removed.length).toBe(MANY - 10);
    expect((await store.list()).length).toBe(11);
    expect((await store.load(fork.runId))?.transcript.length).toBe(2);
  });
});

test("a full disk under SQLite is reported, and the run is resumed when there is space", async () => {
  const place = sqlitePlace();
  {
    await using store = await place.open();
    await interruptedRuns(store, 1);
  }
  // ulimit: no file may grow past 256 KB, so the answer does not fit.
  const [full] = await boot(place.address, "*600000", "trap '' XFSZ; ulimit -f 256; ");
  expect(full?.status).toBe("failed");
  expect(full?.warnings?.join()).toMatch(/not recorded.*(disk|full|I\/O)/);
  const [resumed] = await boot(place.address, "*600000");
  expect(resumed).toMatchObject({ how: "resumed", status: "completed" });
  await using store = await place.open();
  expect((await store.load("r0"))?.output?.length).toBe(600_000);
});

test("a full disk under PostgreSQL is reported before the effect, and the run is resumed when there is space", async () => {
  const place = await postgresPlace();
  await using store = await place.open();
  // The error that PostgreSQL reports for a full disk.
  const full = `CREATE FUNCTION full_disk() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
    RAISE EXCEPTION 'could not extend file: No space left on device' USING ERRCODE = '53100'; END $$;
    CREATE TRIGGER full_disk BEFORE INSERT ON entry FOR EACH ROW EXECUTE FUNCTION full_disk();`;
  let sent = 0;
  const agent = { id: "a", tools: { send: tool("once", () => ++sent) } };
  const script: Line[] = [{ calls: [{ tool: "send", input: { n: 1 } }] }, "sent"];
  const model = createScriptedModel(script);
  const ports = { budget: { check: () => undefined, commit: () => place.change(full) } };
  const result = await createExecutor({ model, store, ports }).run(agent, "go", { runId: "r0" });
  expect(result).toMatchObject({ status: "failed", error: { code: "DISK_FULL" } });
  expect(result.error?.hint).toContain("free disk space");
  expect(sent).toBe(0);
  expect(await store.head("r0")).toMatchObject({ status: "running", messageCount: 1 });
  await place.change("DROP TRIGGER full_disk ON entry; UPDATE head SET lease_until_ms = 1");
  const [resumed] = await recoverInterrupted(executorOn(store, script), { agentFor: () => agent });
  expect(resumed).toMatchObject({ how: "resumed", result: { status: "completed", output: "sent" } });
  expect(sent).toBe(1);
});

describe.each(["memory", "SQLite", "PostgreSQL"])("a run of a newer version on %s", (kind) => {
  test("is reported, not changed, and does not block the others", async () => {
    const place = kind === "PostgreSQL" ? await postgresPlace() : sqlitePlace();
    const journal = createMemoryJournal();
    await using store = kind === "memory" ? createRunStore(journal) : await place.open();
    await interruptedRuns(store, 3);
    if (kind === "memory") {
      const { readHead, list } = journal;
      const newer = <T extends { id: string } | undefined>(row: T): T =>
        row?.id === "r1" ? { ...row, format: 99 } : row;
      Object.assign(journal, {
        readHead: async (id: string) => newer(await readHead(id)),
        list: async (query: object) => (await list(query)).map(newer),
      });
    } else await place.change("UPDATE run SET format = 99 WHERE id = 'r1'");
    const operations = [
      () => store.load("r1"),
      () => resumeRun(executorOn(store), { id: "a" }, "r1"),
      () => store.fork("r1", 0),
      () => store.history("r1"),
      () => store.delete("r1"),
    ];
    for (const operation of operations) {
      await expect(operation()).rejects.toMatchObject({
        code: "RUN_NEWER",
        hint: expect.stringContaining("upgrade"),
      });
    }
    const before = await store.head("r1");
    const recovered = await recoverInterrupted(executorOn(store), { agentFor: () => ({ id: "a" }) });
    expect(recovered.filter(({ how }) => how === "resumed").length).toBe(2);
    expect(recovered.find(({ runId }) => runId === "r1")).toMatchObject({
      how: "skipped",
      reason: expect.stringContaining("format 99"),
    });
    expect(await store.head("r1")).toEqual(before);
  });

  test("is not pruned either", async () => {
    if (kind === "memory")
      return expect(choosePrunable([ended("new", 99), ended("old", 2)], all, 9)).toEqual(["old"]);
    const place = kind === "PostgreSQL" ? await postgresPlace() : sqlitePlace();
    await using store = await place.open();
    for (const runId of ["r0", "r1"]) await executorOn(store).run({ id: "a" }, "go", { runId });
    await place.change("UPDATE run SET format = 99 WHERE id = 'r1'");
    expect((await store.prune(all)).removed).toEqual(["r0"]);
    expect((await store.head("r1"))?.status).toBe("completed");
  });
});

const all = { olderThanMs: 0 };
const ended = (id: string, format: number) => ({
  ...{ id, format, status: "completed" as const, epoch: 1, step: 1, updatedAtMs: 1, agentId: "a" },
  ...{ forkOf: null, forkStep: null, parentRunId: null, unknownEffects: 0 },
});

describe("a file of runs", () => {
  test("of another program is refused before anything is written", async () => {
    const place = sqlitePlace();
    await (await place.open())[Symbol.asyncDispose]();
    await place.change("PRAGMA application_id = 7");
    const bytes = readFileSync(place.address);
    await expect(place.open()).rejects.toThrow(/another program/);
    expect(readFileSync(place.address).equals(bytes)).toBe(true);
  });

  test("contains no plaintext of an encrypted run, and only its owner can read it and its WAL", async () => {
    const place = sqlitePlace();
    {
      await using store = await place.open({ encryptionKey: new Uint8Array(32).fill(1) });
      await executorOn(store, ["secret answer"]).run({ id: "a" }, "secret question", { runId: "r0" });
      for (const name of ["", "-wal", "-shm"]) expect(statSync(place.address + name).mode & 0o077).toBe(0);
    }
    expect(readFileSync(place.address).includes("secret")).toBe(false);
  });
});
