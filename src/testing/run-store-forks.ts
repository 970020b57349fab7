// Retention and forks: a part of the suite in run-store-conformance.ts.
import assert from "node:assert/strict";
import {
  assistant,
  change,
  type Declare,
  type Effect,
  effect,
  info,
  LEASE_MS,
  longRun,
  rejects,
  text,
} from "./run-store-bench.ts";

export function declareForks({ describe, test }: Declare): void {
  describe("forks and retention", () => {
    test("a fork shares earlier messages and continues on its own", async ({ store }) => {
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
    test("prune removes ended runs but keeps messages that forks share", async ({ store, clock }) => {
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
    test("a fork made during a prune either loads completely or is refused", async ({ open }) => {
      // Two stores on one location, as in two processes.
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
    test("prune keeps open, parked, recent and the newest runs", async ({ store, clock }) => {
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
}
