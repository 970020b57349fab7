// Operations, queues, schedules and live text across real processes, the same for SQLite and PostgreSQL: hosts execute the runs, this
// process does everything else from outside.
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { ToolLoopAgent } from "ai";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import {
  approveRun,
  cancelRun,
  durable,
  listRuns,
  openPostgresRunStore,
  openSqliteRunStore,
  type RunStore,
  sendToRun,
  setQueue,
  showRun,
  wakeRun,
} from "../../../src/run/index.ts";
import { bundleProgram } from "../../bundle.ts";
import { script } from "../durable/models.ts";
import { type PostgresServer, startPostgres } from "../postgres-server.ts";

const PROGRAM = join(import.meta.dirname, "host-program.ts");
const SOON = { timeout: 60_000, interval: 25 };
let server: PostgresServer;
beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server[Symbol.asyncDispose]());

describe.each(["sqlite", "postgres"] as const)("two processes on %s", (kind) => {
  let directory: string;
  let place: string;
  let store: RunStore;
  let hosts: ChildProcess[];
  beforeEach(async () => {
    directory = mkdtempSync(join(tmpdir(), "lazarus-across-"));
    place = kind === "sqlite" ? join(directory, "runs.db") : await server.createDatabase();
    store = kind === "sqlite" ? openSqliteRunStore(place) : await openPostgresRunStore(place);
    hosts = [];
  });
  afterEach(async () => {
    for (const host of hosts) host.kill("SIGKILL");
    await store[Symbol.asyncDispose]();
    rmSync(directory, { recursive: true, force: true });
  });

  const host = async (role = "serve"): Promise<ChildProcess> => {
    const program = await bundleProgram(PROGRAM);
    const child = spawn(
      process.execPath,
      ["--disable-warning=ExperimentalWarning", program, place, join(directory, "log"), role],
      { stdio: ["pipe", "ignore", "inherit"] },
    );
    hosts.push(child);
    return child;
  };
  /** The agent of the hosts, without its tools: this process never executes anything. */
  const agent = () =>
    durable(new ToolLoopAgent({ id: "worker", model: script(["not here"]) }), { store, recover: false });
  const begin = (prompt: string, runId: string) => agent().enqueue({ prompt, runId, queue: "q" });
  const becomes = (runId: string, status: string) =>
    vi.waitFor(async () => expect((await store.head(runId))?.status).toBe(status), SOON);
  /** What tools did: `start` or `end`, run, process. */
  const events = () => {
    const path = join(directory, "log");
    const lines = existsSync(path) ? readFileSync(path, "utf8").trim().split("\n") : [];
    return lines.map((line) => line.split(" ") as ["start" | "end", string, string]);
  };

  test("answers, messages, wake-ups and cancels reach the runs of another process", async () => {
    const { pid } = await host();
    await begin("ask", "asks");
    await becomes("asks", "waiting");
    await approveRun(store.log, "asks", undefined, { approved: true });
    await becomes("asks", "completed");
    expect(events()).toEqual([["start", "asks", String(pid)]]);

    await begin("listen", "listens");
    await becomes("listens", "waiting");
    expect(await sendToRun(store.log, "listens", { n: 1 }, { name: "go", id: "m" })).toMatchObject({
      verdict: "accepted",
    });
    await becomes("listens", "completed");
    expect((await store.effects("listens"))[0]?.output).toEqual({ n: 1 });

    // Sent before any process works on it.
    await setQueue(store.log, "q", { total: 0 });
    await begin("listen", "hears");
    await sendToRun(store.log, "hears", "early", { name: "go" });
    await setQueue(store.log, "q", null);
    await becomes("hears", "completed");
    expect((await store.effects("hears"))[0]?.output).toBe("early");

    await begin("nap", "naps");
    await becomes("naps", "waiting");
    await wakeRun(store.log, "naps");
    await becomes("naps", "completed");

    await begin("hang", "hangs");
    await vi.waitFor(() => expect(events().at(-1)?.[1]).toBe("hangs"), SOON);
    expect((await store.head("hangs"))?.owner).toContain(String(pid));
    const [cancelled] = await cancelRun(store.log, "hangs", SOON.timeout);
    expect(cancelled).toMatchObject({ status: "cancelled", unknownEffects: ["hangs.1.0"] });
    expect((await showRun(store.log, "hangs")).summary.unknownEffects).toBe(1);
  }, 120_000);

  test("a queue keeps its limits and finishes every run although one of its workers is killed", async () => {
    await setQueue(store.log, "q", { total: 3, perWorker: 2 });
    const ids = Array.from({ length: 10 }, (_, i) => `run-${i}`);
    for (const id of ids) await begin("hold", id);
    const [first, second] = [await host(), await host()];
    const workers = () => new Set(events().map(([, , pid]) => pid));
    await vi.waitFor(() => expect([events().length, workers().size]).toEqual([3, 2]), SOON);
    first.kill("SIGKILL");
    writeFileSync(join(directory, "log.go"), "");
    await vi.waitFor(async () => {
      const runs = await listRuns(store.log, { statuses: ["completed"] });
      expect(runs.map(({ runId }) => runId).sort()).toEqual(ids);
    }, SOON);
    expect(workers()).toEqual(new Set([String(first.pid), String(second.pid)]));
    // A run whose process was killed keeps its slot until it is continued, so it counts once.
    const open = new Set<string>();
    for (const [what, runId] of events()) {
      if (what === "start") open.add(runId);
      else open.delete(runId);
      expect(open.size).toBeLessThanOrEqual(3);
    }
    for (const id of ids)
      expect(events().filter(([what, run]) => what === "end" && run === id)).not.toEqual([]);
  }, 120_000);

  test("each tick of a schedule runs once on two hosts", async () => {
    await host("schedule");
    await host("schedule");
    await vi.waitFor(
      async () => expect((await store.list({ statuses: ["completed"] })).length).toBeGreaterThan(5),
      SOON,
    );
    for (const each of hosts) each.kill("SIGKILL");
    const completed = (await store.list({ statuses: ["completed"] })).map(({ runId }) => runId);
    const ended = events().filter(([what]) => what === "end");
    for (const id of completed) expect(ended.filter(([, run]) => run === id)).toHaveLength(1);
    expect(new Set(completed).size).toBe(completed.length);
  }, 120_000);

  test("text is seen in another process while it is generated", async () => {
    const typist = await host("stream");
    const follower = durable(new ToolLoopAgent({ id: "typist", model: script(["not here"]) }), {
      ...{ store, recover: false },
    });
    await becomes("typed", "running");
    let text = "";
    const followed = await follower.follow("typed");
    const reading = (async () => {
      for await (const delta of followed.textStream) text += delta;
    })();
    reading.catch(() => {});
    let typed = "";
    for (const n of [1, 2]) {
      const before = text.length;
      await vi.waitFor(() => {
        typed += `word${n} `;
        typist.stdin!.write(`word${n} \n`);
        expect(text.length).toBeGreaterThan(before);
      }, SOON);
    }
    expect((await store.head("typed"))?.status).toBe("running");
    typist.stdin!.write("end\n");
    await reading;
    expect(text).toBe(typed);
    expect(await followed.outcome).toMatchObject({ status: "completed" });
  }, 120_000);
});
