// Retention and forks: a part of the suite in run-store-conformance.ts.
import assert from "node:assert/strict";
import { begin, claim, type Declare, effect, LEASE_MS, longRun, rejects, texts } from "./run-store-bench.ts";

export function declareForks({ describe, test }: Declare): void {
  describe("forks and retention", () => {
    test("a fork shares earlier steps and continues independently", async ({ store }) => {
      const owner = await longRun(store, "r1", 5);
      const fork = await store.fork("r1", 3);
      await (await claim(store, fork.runId))!.answer(4, "fork");
      await owner.answer(6, "main");
      const second = await store.fork(fork.runId, 4);
      assert.deepEqual(await texts(store, fork.runId), ["go", "s1", "s2", "s3", "fork"]);
      assert.deepEqual(await texts(store, second.runId), ["go", "s1", "s2", "s3", "fork"]);
      assert.deepEqual(await texts(store, "r1"), ["go", "s1", "s2", "s3", "s4", "s5", "main"]);
      assert.equal((await store.head(fork.runId))?.forkOf, "r1");
      await rejects(store.fork("r1", 99), "RUN_STEP_UNKNOWN");
      await rejects(store.fork("none", 1), "RUN_UNKNOWN");
    });
    test("prune removes ended runs but keeps steps that forks share", async ({ store, clock }) => {
      const owner = await longRun(store, "r1", 5);
      const fork = await store.fork("r1", 2);
      const deeper = await store.fork(fork.runId, 1);
      await owner.end("completed");
      await (await longRun(store, "r2", 3)).end("failed");
      await clock.advance(1000);
      const report = await store.prune({ olderThanMs: 500 });
      assert.deepEqual([...report.removed].sort(), ["r1", "r2"]);
      assert.deepEqual(report.stubs, ["r1"]);
      assert.equal(await store.load("r1"), undefined);
      assert.deepEqual(await texts(store, fork.runId), ["go", "s1", "s2"]);
      assert.deepEqual(await texts(store, deeper.runId), ["go", "s1"]);
      await rejects(store.delete(fork.runId), "RUN_BUSY");
      assert.equal(await store.delete(fork.runId, { force: true }), true);
      assert.deepEqual(await texts(store, deeper.runId), ["go", "s1"]);
      assert.equal(await store.delete(deeper.runId, { force: true }), true);
      assert.deepEqual(await store.list(), []);
    });
    test("a fork made during a prune either loads completely or is refused", async ({ open }) => {
      // Two stores on one location, as in two processes.
      const [store, other] = [await open({}), await open({})];
      for (let i = 0; i < 10; i += 1) {
        await (await longRun(store, `p${i}`, 3)).end("completed");
        const forking = [0, 1].map(() => other.fork(`p${i}`, 2).catch((error) => error.code as string));
        const [, ...forks] = await Promise.all([store.prune({ olderThanMs: 0 }), ...forking]);
        for (const fork of forks) {
          if (typeof fork === "string") assert.equal(fork, "RUN_UNKNOWN");
          else assert.deepEqual(await texts(store, fork.runId), ["go", "s1", "s2"]);
        }
      }
    });
    test("a run is deleted or claimed, never both", async ({ open, clock }) => {
      const [store, other] = [await open({}), await open({})];
      for (let i = 0; i < 10; i += 1) {
        await longRun(store, `d${i}`, 2);
        await clock.advance(LEASE_MS + 1);
        const [deleted, owner] = await Promise.all([
          store.delete(`d${i}`, { force: true }).catch((error) => error.code as string),
          claim(other, `d${i}`),
        ]);
        if (owner === undefined) assert.equal(deleted, true);
        else assert.equal(deleted, "RUN_BUSY");
        assert.equal((await store.head(`d${i}`)) !== undefined, owner !== undefined);
      }
    });
    test("prune keeps open, parked, recent and the newest runs", async ({ store, clock }) => {
      await begin(store, "open");
      const entries = [effect(1, 0, "unknown")];
      await (await begin(store, "parked")).end("needs-human", { entries });
      await (await begin(store, "killed")).end("killed", { entries });
      for (const id of ["old", "newest"]) {
        await clock.advance(10);
        await (await begin(store, id)).end("completed");
      }
      await clock.advance(1_000_000);
      await (await begin(store, "young")).end("completed");
      assert.deepEqual((await store.prune({ olderThanMs: 1000, keepLast: 2 })).removed, ["old"]);
    });
  });
}
