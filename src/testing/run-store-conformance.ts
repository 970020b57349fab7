// The suite that every run store passes: memory, SQLite, PostgreSQL, and yours. It reads like the contract in
// src/run/store.ts. It brings no test runner: hand in `describe` and `test` of the one you use.
import assert from "node:assert/strict";
import { systemDisk } from "../platform/disk.ts";
import type { RunStoreOptions } from "../run/run-store.ts";
import type { RunChange, RunStore } from "../run/store.ts";
import type { Effect, Lease, RunInfo, TranscriptEntry } from "../run/types.ts";
import { createSeededIds } from "./seeded-ids.ts";
import { createSimulatedClock, type SimulatedClock } from "./simulated-clock.ts";
import { createSimulatedProcesses, type SimulatedProcesses } from "./simulated-processes.ts";

/** The two functions of a test runner that the suite needs. */
export interface SuiteRunner {
  describe(name: string, body: () => void): void;
  test(name: string, body: () => Promise<void>): void;
}

/** A place for runs that can be opened many times, as many processes would. */
export interface RunStorePlace {
  open(options: RunStoreOptions): Promise<RunStore>;
  dispose(): Promise<void>;
}

const NO_USAGE = { inputTokens: 0, outputTokens: 0 };
const LEASE_MS = 30_000;

/** Declares the suite for one kind of store; `createPlace` makes an empty place for each test. */
export function runStoreConformance(
  runner: SuiteRunner,
  name: string,
  createPlace: () => Promise<RunStorePlace>,
): void {
  const { describe } = runner;
  const test = (title: string, body: (bench: Bench) => Promise<void>) =>
    runner.test(title, async () => {
      const bench = await createBench(createPlace);
      try {
        await body(bench);
      } finally {
        await bench.dispose();
      }
    });

  describe(`${name} run store`, () => {
    describe("saving and loading", () => {
      test("nothing found is not an error", async ({ store }) => {
        assert.equal(await store.load("no-such-run"), undefined);
        assert.equal(await store.head("no-such-run"), undefined);
        assert.equal(await store.delete("no-such-run"), false);
        assert.deepEqual(await store.list(), []);
      });
      test("a run comes back as it was saved", async ({ store, clock }) => {
        const lease = await store.begin(info("r1"), [user("hello")]);
        const answer = assistant(1, "hi");
        await store.save(lease, change(1, [answer], { usage: { inputTokens: 3, outputTokens: 2 } }));
        const record = await store.load("r1");
        assert.deepEqual(record?.transcript, [user("hello"), answer]);
        assert.deepEqual(record.info, info("r1"));
        assert.equal(record.head.status, "running");
        assert.equal(record.head.step, 1);
        assert.deepEqual(record.head.usage, { inputTokens: 3, outputTokens: 2 });
        assert.equal(record.head.updatedAtMs, clock.nowMs());
      });
      test("a save appends and touches nothing that was there", async ({ store }) => {
        const lease = await store.begin(info("r1"), [user("go")]);
        for (let step = 1; step <= 20; step += 1)
          await store.save(lease, change(step, [assistant(step, `s${step}`)]));
        assert.equal((await store.history("r1")).length, 21);
        assert.deepEqual(await store.history("r1", 20), [assistant(20, "s20")]);
      });
      test("a second run with the same id is refused", async ({ store }) => {
        await store.begin(info("r1"), [user("a")]);
        await rejects(store.begin(info("r1"), [user("b")]), "RUN_ID_TAKEN");
        assert.deepEqual((await store.load("r1"))?.transcript, [user("a")]);
      });
      test("a save at the wrong place is refused and writes nothing", async ({ store }) => {
        const lease = await store.begin(info("r1"), [user("a")]);
        await store.save(lease, change(1, [assistant(1, "x")]));
        await rejects(store.save(lease, change(1, [assistant(1, "other")])), "RUN_OUT_OF_ORDER");
        await rejects(store.save(lease, change(7, [assistant(2, "gap")])), "RUN_OUT_OF_ORDER");
        assert.equal((await store.load("r1"))?.transcript.length, 2);
      });
      test("a save that is repeated because its answer was lost counts once", async ({ store }) => {
        const lease = await store.begin(info("r1"), [user("a")]);
        const again = change(1, [assistant(1, "x")]);
        await store.save(lease, again);
        await store.save(lease, again);
        const end = change(2, [assistant(2, "end")]);
        const closing = { status: "completed", output: "end", error: null } as const;
        await store.close(lease, end, closing);
        await store.close(lease, end, closing);
        assert.equal((await store.load("r1"))?.transcript.length, 3);
      });
      test("bytes, emoji, long and empty texts come back equal", async ({ store }) => {
        const file = { type: "file" as const, data: new Uint8Array([0, 255, 7]), mediaType: "image/png" };
        const odd: TranscriptEntry = { step: 0, phase: 0, message: { role: "user", content: [file] } };
        const long = user(`${"é🙂\u0000".repeat(30_000)}`);
        await store.begin(info("r1"), [odd, long, user("")]);
        assert.deepEqual((await store.load("r1"))?.transcript, [odd, long, user("")]);
      });
      test("endings keep their status, output and error", async ({ store }) => {
        for (const status of ["completed", "failed", "cancelled", "timeout", "killed"] as const) {
          const lease = await store.begin(info(status), [user("a")]);
          const error = status === "completed" ? null : { code: "INTERNAL", message: "why", hint: null };
          await store.close(lease, change(1, []), {
            status,
            output: status === "completed" ? "out" : null,
            error,
          });
          const record = await store.load(status);
          assert.equal(record?.head.status, status);
          assert.deepEqual(record.error, error);
          await rejects(store.save(lease, change(1, [assistant(1, "late")])), "RUN_STALE_LEASE");
        }
        assert.equal((await store.listInterrupted()).length, 0);
      });
      test("lists filter by status and agent, newest first", async ({ store }) => {
        for (const id of ["a", "b", "c"])
          await store.begin({ ...info(id), agentId: id === "b" ? "x" : "y" }, []);
        assert.deepEqual(
          (await store.list()).map(({ runId }) => runId),
          ["c", "b", "a"],
        );
        assert.deepEqual(
          (await store.list({ agentId: "y", limit: 1 })).map(({ runId }) => runId),
          ["c"],
        );
        assert.deepEqual(await store.list({ statuses: ["failed"] }), []);
      });
      test("phases keep their outputs by position", async ({ store }) => {
        const lease = await store.begin(info("r1"), [user("a")]);
        const phases = [
          { position: 0, name: "same", output: "one", fellBack: false },
          { position: 1, name: "same", output: "two", fellBack: true },
        ];
        await store.save(lease, { ...change(1, [assistant(1, "x")]), phase: 1, phases: [phases[0]!] });
        await store.save(lease, { ...change(2, [assistant(2, "y")]), phase: 2, phases: [phases[1]!] });
        assert.deepEqual((await store.load("r1"))?.phases, phases);
      });
    });

    describe("reading while others write", () => {
      test("a run that is being saved is never called damaged", async ({ open }) => {
        const [store, other] = [await open({}), await open({})];
        const lease = await store.begin(info("r1"), [user("go")]);
        let busy = true;
        const reading = (async () => {
          const counts: number[] = [];
          while (busy) {
            const record = await other.load("r1");
            assert.equal(record?.transcript.length, record?.head.messageCount);
            counts.push(record!.transcript.length);
            await new Promise((resolve) => setImmediate(resolve));
          }
          return counts;
        })();
        for (let step = 1; step <= 50; step += 1)
          await store.save(lease, change(step, [assistant(step, `s${step}`)]));
        busy = false;
        const counts = await reading;
        assert.ok(counts.every((count, i) => i === 0 || count >= counts[i - 1]!));
      });
    });

    describe("leases", () => {
      test("a run that is worked on is not interrupted and cannot be claimed", async ({ store, another }) => {
        await store.begin(info("r1"), []);
        const other = await another();
        assert.deepEqual(await other.listInterrupted(), []);
        assert.equal(await other.claim("r1"), undefined);
        await rejects(other.delete("r1"), "RUN_BUSY");
      });
      test("a lease ends with time, and the old owner can write nothing more", async ({
        store,
        clock,
        another,
      }) => {
        const old = await store.begin(info("r1"), [user("a")]);
        await clock.advance(LEASE_MS + 1);
        const other = await another();
        assert.equal((await other.listInterrupted())[0]?.head.runId, "r1");
        const lease = await other.claim("r1");
        assert.equal(lease?.epoch, 2);
        await rejects(store.save(old, change(1, [assistant(1, "zombie")])), "RUN_STALE_LEASE");
        await rejects(
          store.close(old, change(1, []), { status: "completed", output: "zombie", error: null }),
          "RUN_STALE_LEASE",
        );
        assert.equal(await store.renew(old), false);
        await store.release(old);
        await other.save(lease!, change(1, [assistant(1, "mine")]));
        assert.deepEqual((await other.load("r1"))?.transcript, [user("a"), assistant(1, "mine")]);
      });
      test("a clock that went back by days keeps no run from being taken up", async ({
        store,
        clock,
        another,
      }) => {
        const old = await store.begin(info("r1"), [user("a")]);
        clock.jumpWallClock(-3 * 24 * 3600_000);
        const other = await another();
        assert.equal((await other.listInterrupted()).length, 1);
        const lease = await other.claim("r1");
        assert.equal(lease?.epoch, 2);
        await rejects(store.save(old, change(1, [assistant(1, "zombie")])), "RUN_STALE_LEASE");
        await other.save(lease!, change(1, [assistant(1, "mine")]));
        assert.equal(await store.claim("r1"), undefined);
      });
      test("a dead owner on this host is noticed at once", async ({ store, processes, another }) => {
        await store.begin(info("r1"), []);
        const other = await another();
        processes.reboot();
        assert.equal((await other.listInterrupted()).length, 1);
        assert.equal((await other.claim("r1"))?.epoch, 2);
      });
      test("of many who claim, one wins", async ({ store, clock, another }) => {
        await store.begin(info("r1"), []);
        await clock.advance(LEASE_MS + 1);
        const others = await Promise.all(Array.from({ length: 8 }, () => another()));
        const leases = await Promise.all(others.map((other) => other.claim("r1")));
        assert.equal(leases.filter((lease) => lease !== undefined).length, 1);
      });
      test("a save and a renewal prolong it, a release ends it", async ({ store, clock, another }) => {
        const lease = await store.begin(info("r1"), []);
        const other = await another();
        await clock.advance(LEASE_MS - 1);
        await store.save(lease, change(0, [assistant(1, "x")]));
        await clock.advance(LEASE_MS - 1);
        assert.equal(await store.renew(lease), true);
        await clock.advance(LEASE_MS - 1);
        assert.equal(await other.claim("r1"), undefined);
        await store.release(lease);
        assert.equal((await other.claim("r1"))?.epoch, 2);
      });
      test("a run that is given back keeps its record", async ({ store }) => {
        const lease = await store.begin(info("r1"), [user("a")]);
        await store.close(lease, change(1, [assistant(1, "x")]), { status: "interrupted" });
        assert.deepEqual(
          (await store.listInterrupted()).map(({ head }) => head.runId),
          ["r1"],
        );
        assert.equal((await store.load("r1"))?.transcript.length, 2);
      });
    });

    describe("ledger", () => {
      test("an effect moves on in the same save as its message", async ({ store }) => {
        const lease = await store.begin(info("r1"), [user("a")]);
        const prepared = effect("r1", 1, 0);
        await store.save(lease, {
          ...change(1, [assistant(1, "x")]),
          effects: [prepared, effect("r1", 1, 1)],
        });
        const started: Effect = { ...prepared, state: "started", attempts: 1, startedAtMs: 5 };
        await store.save(lease, { ...change(2, []), effects: [started] });
        const done: Effect = { ...started, state: "done", endedAtMs: 6, output: { sent: true } };
        await store.save(lease, { ...change(2, [assistant(1, "result")]), effects: [done] });
        assert.deepEqual(await store.effects("r1"), [done, effect("r1", 1, 1)]);
        assert.deepEqual((await store.load("r1"))?.effects, await store.effects("r1"));
      });
      test("a stale owner cannot touch the ledger", async ({ store, clock, another }) => {
        const old = await store.begin(info("r1"), [user("a")]);
        await store.save(old, { ...change(1, []), effects: [effect("r1", 1, 0)] });
        await clock.advance(LEASE_MS + 1);
        await (await another()).claim("r1");
        const done: Effect = { ...effect("r1", 1, 0), state: "done" };
        await rejects(store.save(old, { ...change(1, []), effects: [done] }), "RUN_STALE_LEASE");
        assert.equal((await store.effects("r1"))[0]?.state, "prepared");
      });
      test("a parked run waits for a human, then can be resumed", async ({ store }) => {
        const lease = await store.begin(info("r1"), [user("a")]);
        const unknown = [0, 1, 2].map(
          (call): Effect => ({ ...effect("r1", 1, call), state: "unknown", attempts: 1 }),
        );
        const error = { code: "RUN_NEEDS_HUMAN", message: "m", hint: null };
        await store.close(lease, { ...change(1, []), effects: unknown }, { status: "needs-human", error });
        assert.equal(await store.claim("r1"), undefined);
        assert.deepEqual(await store.listInterrupted(), []);
        const done = await store.resolve("r1.1.0", { outcome: "done", output: { id: 7 } });
        assert.deepEqual([done.state, done.output], ["done", { id: 7 }]);
        assert.equal((await store.resolve("r1.1.1", { outcome: "retry" })).state, "prepared");
        assert.equal((await store.head("r1"))?.status, "needs-human");
        const failed = await store.resolve("r1.1.2", { outcome: "fail", reason: "bounced" });
        assert.deepEqual([failed.state, failed.error], ["failed", "bounced"]);
        assert.equal((await store.head("r1"))?.status, "running");
        assert.notEqual(await store.claim("r1"), undefined);
        await rejects(store.save(lease, change(1, [assistant(1, "z")])), "RUN_STALE_LEASE");
      });
      test("only an open question can be resolved", async ({ store }) => {
        const lease = await store.begin(info("r1"), []);
        await store.save(lease, { ...change(0, []), effects: [{ ...effect("r1", 1, 0), state: "unknown" }] });
        await rejects(store.resolve("r1.1.0", { outcome: "done" }), "RUN_BUSY");
        await store.release(lease);
        await store.resolve("r1.1.0", { outcome: "done" });
        await rejects(store.resolve("r1.1.0", { outcome: "retry" }), "EFFECT_SETTLED");
        await rejects(store.resolve("r1.9.9", { outcome: "retry" }), "EFFECT_UNKNOWN");
        await rejects(store.resolve("nonsense", { outcome: "retry" }), "EFFECT_UNKNOWN");
      });
    });

    describe("forks and retention", () => {
      test("a fork shares the past and has its own future", async ({ store }) => {
        const lease = await longRun(store, "r1", 5);
        const fork = await store.fork("r1", 3);
        const mine = await store.claim(fork.runId);
        await store.save(mine!, change(4, [assistant(4, "fork")]));
        await store.save(lease, change(6, [assistant(6, "main")]));
        const second = await store.fork(fork.runId, 4);
        assert.deepEqual((await store.load(fork.runId))?.transcript.map(text), [
          "go",
          "s1",
          "s2",
          "s3",
          "fork",
        ]);
        assert.deepEqual((await store.load(second.runId))?.transcript.map(text), [
          "go",
          "s1",
          "s2",
          "s3",
          "fork",
        ]);
        assert.deepEqual((await store.load("r1"))?.transcript.map(text), [
          "go",
          "s1",
          "s2",
          "s3",
          "s4",
          "s5",
          "main",
        ]);
        assert.equal((await store.load(fork.runId))?.info.parentRunId, "r1");
        await rejects(store.fork("r1", 99), "RUN_STEP_UNKNOWN");
        await rejects(store.fork("none", 1), "RUN_UNKNOWN");
      });
      test("prune takes ended runs and keeps what kept heads need", async ({ store, clock }) => {
        const lease = await longRun(store, "r1", 5);
        const fork = await store.fork("r1", 2);
        const deeper = await store.fork(fork.runId, 1);
        await store.close(lease, change(6, []), { status: "completed", output: "o", error: null });
        const other = await longRun(store, "r2", 3);
        await store.close(other, change(4, []), { status: "failed", output: null, error: null });
        await clock.advance(1000);
        const report = await store.prune({ olderThanMs: 500 });
        assert.deepEqual([...report.removed].sort(), ["r1", "r2"]);
        assert.deepEqual(report.stubs, ["r1"]);
        assert.equal(await store.load("r1"), undefined);
        assert.deepEqual((await store.load(fork.runId))?.transcript.map(text), ["go", "s1", "s2"]);
        assert.deepEqual((await store.load(deeper.runId))?.transcript.map(text), ["go", "s1"]);
        assert.equal(await store.delete(fork.runId), true);
        assert.deepEqual((await store.load(deeper.runId))?.transcript.map(text), ["go", "s1"]);
        assert.equal(await store.delete(deeper.runId), true);
        assert.deepEqual(await store.list(), []);
      });
      test("a fork that is made while its run is pruned either loads whole or is refused", async ({
        open,
      }) => {
        // Two stores on one place, as two processes: neither knows what the other is about to do.
        const [store, other] = [await open({}), await open({})];
        for (let i = 0; i < 10; i += 1) {
          const lease = await longRun(store, `p${i}`, 3);
          await store.close(lease, change(4, []), { status: "completed", output: null, error: null });
          const forking = [0, 1].map(() => other.fork(`p${i}`, 2).catch((error) => error.code as string));
          const [, ...forks] = await Promise.all([store.prune({ olderThanMs: 0 }), ...forking]);
          for (const fork of forks) {
            if (typeof fork === "string") assert.equal(fork, "RUN_UNKNOWN");
            else {
              const loaded = await store.load(fork.runId);
              assert.deepEqual(loaded?.transcript.map(text), ["go", "s1", "s2"]);
            }
          }
        }
      });
      test("a run is deleted or claimed, never both", async ({ open, clock }) => {
        const [store, other] = [await open({}), await open({})];
        for (let i = 0; i < 10; i += 1) {
          await longRun(store, `d${i}`, 2);
          await clock.advance(LEASE_MS + 1);
          const [deleted, lease] = await Promise.all([
            store.delete(`d${i}`).catch((error) => error.code as string),
            other.claim(`d${i}`),
          ]);
          if (lease === undefined) assert.equal(deleted, true);
          else assert.equal(deleted, "RUN_BUSY");
          assert.equal((await store.head(`d${i}`)) !== undefined, lease !== undefined);
        }
      });
      test("prune spares the open, the parked, the young and the newest", async ({ store, clock }) => {
        await store.begin(info("open"), []);
        const parked = await store.begin(info("parked"), []);
        const unknown: Effect = { ...effect("parked", 1, 0), state: "unknown" };
        const error = { code: "RUN_NEEDS_HUMAN", message: "m", hint: null };
        await store.close(parked, { ...change(0, []), effects: [unknown] }, { status: "needs-human", error });
        const killed = await store.begin(info("killed"), []);
        const lost: Effect = { ...effect("killed", 1, 0), state: "unknown" };
        await store.close(
          killed,
          { ...change(0, []), effects: [lost] },
          { status: "killed", output: null, error: null },
        );
        for (const id of ["old", "newest"]) {
          await clock.advance(10);
          const lease = await store.begin(info(id), []);
          await store.close(lease, change(0, []), { status: "completed", output: null, error: null });
        }
        await clock.advance(1_000_000);
        const young = await store.begin(info("young"), []);
        await store.close(young, change(0, []), { status: "completed", output: null, error: null });
        assert.deepEqual((await store.prune({ olderThanMs: 1000, keepLast: 2 })).removed, ["old"]);
      });
    });

    describe("secrets", () => {
      const token = `ghp_${"1234567890abcdefghijklmnopqrstuvwx12"}`;
      test("are redacted on the way in, with a count", async ({ store }) => {
        const lease = await store.begin(info("r1"), [user(`my token is ${token}`)]);
        assert.equal(lease.redactions, 1);
        const call = assistant(1, `use ${token} and ${token}`);
        const receipt = await store.save(lease, { ...change(1, [call]), effects: [effect("r1", 1, 0)] });
        assert.equal(receipt.redactions, 2);
        assert.deepEqual(receipt.redactedInputs, ["r1.1.0"]);
        const record = await store.load("r1");
        assert.equal(JSON.stringify(record).includes(token), false);
        assert.equal(record?.head.redactions, 3);
        assert.equal(record?.effects[0]?.inputRedacted, true);
      });
      test("with a key, everything said is sealed and bound to its place", async ({ open }) => {
        const encryptionKey = new Uint8Array(32).fill(7);
        const sealed = await open({ encryptionKey });
        const lease = await sealed.begin(info("r1"), [user("the launch code is 1234")]);
        const done: Effect = { ...effect("r1", 1, 0), state: "done", output: "1234" };
        await sealed.save(lease, { ...change(1, [assistant(1, "1234")]), effects: [done] });
        const fork = await sealed.fork("r1", 1);
        assert.deepEqual((await sealed.load(fork.runId))?.transcript.map(text), [
          "the launch code is 1234",
          "1234",
        ]);
        assert.equal((await sealed.load("r1"))?.effects[0]?.output, "1234");
        const plain = await open({});
        await rejects(plain.load("r1"), "RUN_KEY_WRONG");
        await rejects(
          (await open({ encryptionKey: new Uint8Array(32).fill(8) })).load("r1"),
          "RUN_KEY_WRONG",
        );
        await plain.begin(info("r2"), [user("planted")]);
        await rejects(sealed.load("r2"), "RUN_PLAINTEXT");
      });
      test("a word without the key, which would make a sealed run unreadable, is refused", async ({
        open,
      }) => {
        const encryptionKey = new Uint8Array(32).fill(7);
        const sealed = await open({ encryptionKey });
        const lease = await sealed.begin(info("r1"), [user("a")]);
        const started: Effect = { ...effect("r1", 1, 0), state: "started", attempts: 1 };
        await sealed.save(lease, { ...change(1, []), effects: [started] });
        await sealed.release(lease);
        await rejects(
          (await open({})).resolve("r1.1.0", { outcome: "fail", reason: "no key" }),
          "RUN_KEY_WRONG",
        );
        const settled = await sealed.resolve("r1.1.0", { outcome: "fail", reason: "with it" });
        assert.equal(settled.error, "with it");
        assert.equal((await sealed.load("r1"))?.effects[0]?.state, "failed");
      });
    });
  });
}

interface Bench {
  readonly store: RunStore;
  readonly clock: SimulatedClock;
  readonly processes: SimulatedProcesses;
  /** The same place as another process on another host sees it. */
  another(): Promise<RunStore>;
  open(options: RunStoreOptions): Promise<RunStore>;
  dispose(): Promise<void>;
}

async function createBench(createPlace: () => Promise<RunStorePlace>): Promise<Bench> {
  const place = await createPlace();
  const clock = createSimulatedClock();
  const processes = createSimulatedProcesses();
  const opened: RunStore[] = [];
  const machineOf = (own: SimulatedProcesses, seed: number) => ({
    clock,
    processes: own,
    ids: createSeededIds(seed),
    disk: systemDisk,
  });
  const open = async (options: RunStoreOptions) => {
    const machine = machineOf(processes, opened.length + 1);
    const store = await place.open({ machine, leaseMs: LEASE_MS, ...options });
    opened.push(store);
    return store;
  };
  const store = await open({});
  return {
    store,
    clock,
    processes,
    open,
    another: () => {
      const selfPid = 5000 + opened.length;
      const seen = { ...processes, self: () => processes.identify(selfPid) ?? processes.start(selfPid) };
      return open({ machine: machineOf(seen, 100 + opened.length) });
    },
    async dispose() {
      for (const each of opened) await each[Symbol.asyncDispose]();
      await place.dispose();
    },
  };
}

async function longRun(store: RunStore, runId: string, steps: number): Promise<Lease> {
  const lease = await store.begin(info(runId), [user("go")]);
  for (let step = 1; step <= steps; step += 1)
    await store.save(lease, change(step, [assistant(step, `s${step}`)]));
  return lease;
}

function info(runId: string): RunInfo {
  return {
    ...{ runId, agentId: "agent", agentName: "Agent", callerId: null, channelId: null, guildId: null },
    ...{
      parentRunId: null,
      prompt: "p",
      modelTier: null,
      inputs: { a: [1] },
      startedAtMs: 1,
      maxIterations: 9,
    },
  };
}

function user(content: string): TranscriptEntry {
  return { step: 0, phase: 0, message: { role: "user", content } };
}

function assistant(step: number, content: string): TranscriptEntry {
  return { step, phase: 0, message: { role: "assistant", content } };
}

function text(entry: TranscriptEntry): unknown {
  return entry.message.content;
}

function change(fromCount: number, messages: TranscriptEntry[], more: Partial<RunChange> = {}): RunChange {
  const step = messages.at(-1)?.step ?? fromCount;
  return { fromCount, messages, step, phase: 0, usage: NO_USAGE, ...more };
}

function effect(runId: string, step: number, call: number): Effect {
  return {
    ...{
      id: `${runId}.${step}.${call}`,
      runId,
      step,
      call,
      callId: `call-${call}`,
      tool: "send",
      class: "once",
    },
    ...{ state: "prepared", attempts: 0, preparedAtMs: 1, startedAtMs: null, endedAtMs: null },
    ...{ output: null, error: null, inputRedacted: false },
  };
}

async function rejects(promise: Promise<unknown>, code: string): Promise<void> {
  await assert.rejects(promise, (error: unknown) => {
    assert.equal((error as { code?: string }).code, code, String(error));
    return true;
  });
}
