// Kills every example at the crash points it passes, and restarts it until it finishes. The first kill uses the source, the
// others a bundle, which starts faster.
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { openCellRunStore, openSqliteRunStore } from "../../src/run/index.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { ARM, bundleProgram } from "../bundle.ts";

const ROOT = join(import.meta.dirname, "..", "..");
const MAX_STARTS = 4;

let directory: string;
beforeAll(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-examples-"));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

/** Bundles of the examples, used from the second kill on. */
const programs = new Map<string, string>();

async function programOf(example: string): Promise<string> {
  const source = join(ROOT, "examples", example);
  const known = programs.get(example);
  if (known === undefined) programs.set(example, await bundleProgram(source));
  return known ?? source;
}

function start(program: string, cell: string, crashAt?: string) {
  const arm = crashAt === undefined ? [] : ["--import", ARM];
  const { status, signal, stdout, stderr } = spawnSync(
    process.execPath,
    ["--disable-warning=ExperimentalWarning", ...arm, program, cell],
    {
      encoding: "utf8",
      env: { ...process.env, ...(crashAt === undefined ? {} : { LAZARUS_CRASH_AT: crashAt }) },
    },
  );
  if (signal === null && status !== 0 && status !== 4)
    throw new Error(`${program} ended with ${status}: ${stderr}`);
  return { killed: signal === "SIGKILL", status, stdout };
}

/** Kills it at the point, then restarts it until it exits with 0; `help` is what a human does in between. */
async function survive(example: string, point: string, help?: (cell: string) => Promise<void>) {
  const cell = mkdtempSync(join(directory, "cell-"));
  const program = await programOf(example);
  const { killed } = start(program, cell, point);
  for (let i = 0; i < MAX_STARTS; i += 1) {
    const { status, stdout } = start(program, cell);
    if (status === 0) return { cell, killed, stdout };
    await help?.(cell);
  }
  throw new Error(`${example}, killed at ${point}, did not finish`);
}

const points = (start: string) =>
  listCrashPoints(join(ROOT, "src"))
    .map(({ name }) => name)
    .filter((name) => name.startsWith(start));

const AROUND = [
  "engine.begin.recorded",
  "engine.model.answered",
  "engine.save.after",
  "engine.effect.happened",
  "engine.close.before",
];

describe("examples", () => {
  test.each([...AROUND, "engine.effect.started#3", "engine.effect.started", "engine.effect.recorded"])(
    "the research agent killed at %s mails its report once",
    async (point) => {
      const outboxOf = (cell: string) => {
        const path = join(cell, "outbox.jsonl");
        return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
      };
      const { cell } = await survive("research-agent.ts", point, async (where) => {
        await using store = openCellRunStore(where);
        for (const { id, state } of await store.effects("report")) {
          if (state !== "unknown") continue;
          await store.resolve(id, {
            outcome: outboxOf(where).some((line) => line.includes(id)) ? "done" : "retry",
          });
        }
      });
      expect(outboxOf(cell).length).toBe(1);
      await using store = openCellRunStore(cell);
      expect((await store.list()).map(({ runId, status }) => `${runId} ${status}`).sort()).toEqual([
        "report completed",
        "report.1.0.0 completed",
        "report.2.0.0 completed",
      ]);
    },
  );
  test.each([...AROUND, "engine.phase.finished", "engine.phase.finished#2"])(
    "the phased agent killed at %s finishes all phases",
    async (point) => {
      const { cell, stdout, killed } = await survive("phased-agent.ts", point);
      expect(killed).toBe(true);
      expect(stdout).toContain("completed after 3 phases");
      expect(readdirSync(cell)).toContain("chapter.txt");
    },
  );
  test.each([...points("langgraph."), "langgraph.put.after#3"])(
    "the graph killed at %s has every message once",
    async (point) => {
      const { stdout, killed } = await survive("langgraph-graph.ts", point);
      expect(killed).toBe(true);
      expect(stdout).toBe("hello, gathered, thought, answered\n");
    },
  );
  test("the nightly schedule, on two hosts of which one is killed, reports once for the night that was missed", async () => {
    const data = mkdtempSync(join(directory, "nightly-"));
    const reports = () => {
      const path = join(data, "reports.jsonl");
      return existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
    };
    await using store = openSqliteRunStore(join(data, "runs.db"));
    await store.log.journal.writeTick("nightly", Date.now() - 3 * 86_400_000);
    const program = join(ROOT, "examples", "nightly-schedule.ts");
    const hosts: ChildProcess[] = [];
    const launch = (crashAt?: string) => {
      const arm = crashAt === undefined ? [] : ["--import", ARM];
      const env = { ...process.env, ...(crashAt === undefined ? {} : { LAZARUS_CRASH_AT: crashAt }) };
      const host = spawn(process.execPath, ["--disable-warning=ExperimentalWarning", ...arm, program, data], {
        env,
        stdio: "ignore",
      });
      hosts.push(host);
      return host;
    };
    try {
      // Dies after the model has answered, before the report is published.
      const [, signal] = await once(launch("engine.model.answered"), "exit");
      expect([signal, reports()]).toEqual(["SIGKILL", []]);
      launch();
      launch();
      await vi.waitFor(
        async () => {
          const runs = await store.list();
          expect(runs.map(({ status }) => status)).toEqual(["completed"]);
          expect(runs[0]!.runId).toMatch(/^nightly-\d{8}T030000000Z$/);
        },
        { timeout: 60_000, interval: 50 },
      );
      expect(reports()).toHaveLength(1);
    } finally {
      for (const host of hosts) host.kill("SIGKILL");
    }
  }, 90_000);
});
