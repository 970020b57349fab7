// Positions of a cell's runs, which checkpoints record, and that a restored runs.db resumes at the step of its checkpoint.
import {
  chmodSync,
  copyFileSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jsonSchema } from "ai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createExecutor, openCellRunStore, recoverInterrupted, ShutdownError } from "../../src/run/index.ts";
import { claimRun } from "../../src/run/log/run-log.ts";
import { describeRunMove, type RunPosition, readRunPositions } from "../../src/run/store/positions.ts";
import { createScriptedModel, type Line } from "./scripted-model.ts";

let cell: string;
beforeEach(() => {
  cell = mkdtempSync(join(tmpdir(), "lazarus-positions-"));
});
afterEach(() => rmSync(cell, { recursive: true, force: true }));

const step: Line = { calls: [{ tool: "look", input: {} }] };

/** An agent that counts its calls in a file of the cell, and is stopped after `stopAfter` of them. */
function agentOf(looks: number[], stop: AbortController, stopAfter: number) {
  const look = {
    inputSchema: jsonSchema<object>({ type: "object" }),
    effect: "idempotent" as const,
    execute: () => {
      looks.push(looks.length + 1);
      writeFileSync(join(cell, "notes.txt"), String(looks.length));
      if (looks.length === stopAfter) stop.abort(new ShutdownError());
      return looks.length;
    },
  };
  return { id: "scout", tools: { look } };
}

async function workUntil(stopAfter: number, looks: number[]) {
  await using store = openCellRunStore(cell);
  const stop = new AbortController();
  const model = createScriptedModel([...Array.from({ length: 6 }, () => step), "the end"]);
  const executor = createExecutor({ model, store });
  const agent = agentOf(looks, stop, stopAfter);
  if ((await store.list()).length === 0)
    return await executor.run(agent, "go", { runId: "r1", signal: stop.signal });
  const [recovered] = await recoverInterrupted(executor, {
    agentFor: () => agent,
    signal: stop.signal,
  });
  return recovered?.how === "resumed" ? recovered.result : recovered;
}

describe("positions of a cell's runs", () => {
  test("a missing, foreign or damaged store has none, and no file is created", () => {
    expect(readRunPositions(cell)).toEqual([]);
    expect(readdirSync(cell)).toEqual([]);
    mkdirSync(join(cell, "state"));
    writeFileSync(join(cell, "state", "runs.db"), "not a database");
    expect(readRunPositions(cell)).toEqual([]);
    expect(readdirSync(join(cell, "state"))).toEqual(["runs.db"]);
  });
  test("are read while the store is open, closed, or left with a log by a kill", async () => {
    await workUntil(2, []);
    const position = {
      runId: "r1",
      agentId: "scout",
      status: "running",
      step: 2,
      phase: 0,
      unknownEffects: 0,
    };
    const names = () => readdirSync(join(cell, "state")).sort();
    expect(names()).toEqual(["runs.db"]);
    expect(readRunPositions(cell)).toMatchObject([{ ...position, store: "state/runs.db" }]);
    expect(names()).toEqual(["runs.db"]);
    await using store = openCellRunStore(cell);
    await claimRun(store.log, (await store.log.journal.readHead("r1"))!);
    expect(readRunPositions(cell)).toMatchObject([position]);
    // As in a copy of a killed process's files: a write-ahead log without its index.
    const copy = mkdtempSync(join(tmpdir(), "lazarus-positions-"));
    mkdirSync(join(copy, "state"));
    for (const name of ["runs.db", "runs.db-wal"]) {
      copyFileSync(join(cell, "state", name), join(copy, "state", name));
    }
    expect(readRunPositions(copy)).toMatchObject([position]);
    expect(readdirSync(join(copy, "state")).sort()).toEqual(["runs.db", "runs.db-wal"]);
    rmSync(copy, { recursive: true });
  });
  test("are read from a read-only cell", async () => {
    await workUntil(2, []);
    chmodSync(join(cell, "state"), 0o500);
    expect(readRunPositions(cell).length).toBe(1);
    chmodSync(join(cell, "state"), 0o700);
  });
  test("restored files and conversation resume at the same step", async () => {
    const looks: number[] = [];
    await workUntil(2, looks);
    const saved = mkdtempSync(join(tmpdir(), "lazarus-positions-"));
    cpSync(cell, saved, { recursive: true });
    const before = readRunPositions(cell);
    expect(before[0]?.step).toBe(2);
    await workUntil(5, looks);
    const later = readRunPositions(cell);
    expect(later[0]?.step).toBe(5);

    rmSync(cell, { recursive: true });
    cpSync(saved, cell, { recursive: true });
    rmSync(saved, { recursive: true });
    const restored = readRunPositions(cell);
    expect(restored).toEqual(before);
    expect(describeRunMove(later, restored)).toContain("run r1 (scout) went back from step 5 to step 2");
    const again: number[] = [1, 2];
    expect(await workUntil(99, again)).toMatchObject({ status: "completed", output: "the end", steps: 7 });
    expect(again.length).toBe(6);
    expect(existsSync(join(cell, "notes.txt"))).toBe(true);
  });
  test("the description of a restore names restored, removed and moved runs", () => {
    const run = (runId: string, at: number, status: RunPosition["status"] = "running"): RunPosition => ({
      ...{
        store: "state/runs.db",
        runId,
        agentId: "a",
        status,
        step: at,
        phase: 0,
        unknownEffects: 0,
        updatedAtMs: 1,
      },
    });
    expect(describeRunMove([run("x", 3)], [run("x", 3)])).toBe("");
    const words = describeRunMove(
      [run("x", 3), run("new", 1), run("e", 4, "completed")],
      [run("x", 5), run("old", 2), run("e", 4)],
    );
    expect(words).toBe(
      "run x (a) went forward from step 3 to step 5. run old (a) was restored at step 2. run e (a) is running again at step 4. " +
        "run new (a) is gone: it started after the checkpoint.",
    );
  });
});
