// What can go wrong around a store: a full disk, rows of a newer version, damage, two hosts that boot at once. Each ends
// in clear words, and nothing is overwritten or done twice.
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  createCheckpointer,
  createExecutor,
  openSqliteRunStore,
  recoverInterrupted,
} from "../../src/run/index.ts";
import { createScriptedModel } from "./scripted-model.ts";

const PROGRAM = join(import.meta.dirname, "recover-program.ts");
let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-faults-"));
  path = join(directory, "runs.db");
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

async function interruptedRuns(count: number) {
  await using store = openSqliteRunStore(path);
  const ports = { checkpointer: createCheckpointer(store) };
  const executor = createExecutor({ model: createScriptedModel(["end"]), ports });
  await executor.shutdown();
  for (let i = 0; i < count; i += 1) await executor.run({ id: "a" }, "go", { runId: `r${i}` });
}

function change(sql: string) {
  const database = new DatabaseSync(path);
  database.exec(sql);
  database.close();
}

interface Said {
  readonly runId: string;
  readonly how: string;
  readonly status?: string;
  readonly warnings?: string[];
}

function boot(text = "end", shell = ""): Promise<Said[]> {
  const command = `${shell}exec "$@"`;
  const child = spawn("bash", ["-c", command, "boot", process.execPath, PROGRAM, path, text], {
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

describe("faults", () => {
  test("two hosts that boot at once resume every run once", async () => {
    await interruptedRuns(40);
    const both = (await Promise.all([boot(), boot()])).flat();
    const resumed = both.filter(({ how }) => how === "resumed");
    expect(resumed.every(({ status }) => status === "completed")).toBe(true);
    expect(resumed.map(({ runId }) => runId).sort()).toEqual(
      Array.from({ length: 40 }, (_, i) => `r${i}`).sort(),
    );
  });

  test("a full disk ends in words, and the run goes on when there is room", async () => {
    await interruptedRuns(1);
    // No file may grow past 256 KB: the answer does not fit.
    const [full] = await boot("*600000", "trap '' XFSZ; ulimit -f 256; ");
    expect(full?.status).toBe("failed");
    expect(full?.warnings?.join()).toMatch(/not recorded.*(disk|full|I\/O)/);
    const [resumed] = await boot("*600000");
    expect(resumed).toMatchObject({ how: "resumed", status: "completed" });
    await using store = openSqliteRunStore(path);
    expect((await store.load("r0"))?.output?.length).toBe(600_000);
  });

  test("a run of a newer version is named, left alone, and holds up no other", async () => {
    await interruptedRuns(3);
    change("UPDATE run SET format = 99 WHERE id = 'r1'");
    await using store = openSqliteRunStore(path);
    await expect(store.load("r1")).rejects.toMatchObject({ code: "RUN_NEWER" });
    await expect(store.claim("r1")).rejects.toMatchObject({ code: "RUN_NEWER" });
    await expect(store.fork("r1", 0)).rejects.toMatchObject({ code: "RUN_NEWER" });
    const before = await store.head("r1");
    const executor = createExecutor({
      model: createScriptedModel(["end"]),
      ports: { checkpointer: createCheckpointer(store) },
    });
    const recovered = await recoverInterrupted(executor, store, { agentFor: () => ({ id: "a" }) });
    expect(recovered.filter(({ how }) => how === "resumed").length).toBe(2);
    expect(recovered.find(({ runId }) => runId === "r1")).toMatchObject({
      how: "skipped",
      reason: expect.stringContaining("format 99"),
    });
    expect(await store.head("r1")).toEqual(before);
  });

  test("a newer schema and a stranger's database are refused before anything is written", async () => {
    await interruptedRuns(1);
    change("PRAGMA user_version = 99");
    const bytes = readFileSync(path);
    expect(() => openSqliteRunStore(path)).toThrow(/schema 99/);
    expect(readFileSync(path).equals(bytes)).toBe(true);
    change("PRAGMA user_version = 1; PRAGMA application_id = 7");
    expect(() => openSqliteRunStore(path)).toThrow(/another program/);
  });

  test.each([
    ["a message that is not JSON", "UPDATE message SET body = '{oops'", "RUN_DAMAGED"],
    ["a message that is no message", "UPDATE message SET body = '7'", "RUN_DAMAGED"],
    ["a message that is missing", "DELETE FROM message", "RUN_DAMAGED"],
    ["info that is not JSON", "UPDATE run SET info = ''", "RUN_DAMAGED"],
  ])("%s is called damage, and the lease is given back", async (_, sql, code) => {
    await interruptedRuns(1);
    change(sql);
    await using store = openSqliteRunStore(path);
    await expect(store.load("r0")).rejects.toMatchObject({ code });
    const executor = createExecutor({
      model: createScriptedModel(["end"]),
      ports: { checkpointer: createCheckpointer(store) },
    });
    expect(await recoverInterrupted(executor, store, { agentFor: () => ({ id: "a" }) })).toMatchObject([
      { how: "skipped" },
    ]);
    expect((await store.listInterrupted()).length).toBe(1);
  });

  test("rows that were swapped or planted do not pass the seal", async () => {
    const encryptionKey = new Uint8Array(32).fill(1);
    {
      await using store = openSqliteRunStore(path, { encryptionKey });
      const ports = { checkpointer: createCheckpointer(store) };
      const executor = createExecutor({ model: createScriptedModel(["secret answer"]), ports });
      await executor.run({ id: "a" }, "secret question", { runId: "r0" });
      await executor.run({ id: "a" }, "another", { runId: "r1" });
    }
    expect(readFileSync(path).includes("secret")).toBe(false);
    change("UPDATE message SET body = (SELECT body FROM message AS other ORDER BY id DESC LIMIT 1)");
    await using store = openSqliteRunStore(path, { encryptionKey });
    await expect(store.load("r0")).rejects.toMatchObject({ code: "RUN_KEY_WRONG" });
  });

  test("the file and its log are for their owner only", async () => {
    await interruptedRuns(1);
    const { statSync } = await import("node:fs");
    await using store = openSqliteRunStore(path);
    await store.claim("r0");
    for (const name of ["", "-wal", "-shm"]) expect(statSync(path + name).mode & 0o077).toBe(0);
  });
});
