// Leases and the ledger: a part of the suite in run-store-conformance.ts.
import assert from "node:assert/strict";
import { begin, claim, type Declare, effect, LEASE_MS, rejects, response, texts } from "./run-store-bench.ts";

export function declareOwners({ describe, test }: Declare): void {
  describe("leases", () => {
    test("an owned run is not interrupted and cannot be claimed", async ({ store, another }) => {
      await begin(store, "r1");
      const other = await another();
      assert.deepEqual(await other.listInterrupted(), []);
      assert.equal(await claim(other, "r1"), undefined);
      await rejects(other.delete("r1"), "RUN_BUSY");
    });
    test("a lease expires, and the old owner can no longer write", async ({ store, clock, another }) => {
      const old = await begin(store, "r1", "a");
      await clock.advance(LEASE_MS + 1);
      const other = await another();
      assert.equal((await other.listInterrupted())[0]?.head.runId, "r1");
      const owner = await claim(other, "r1");
      assert.equal(owner?.lease.epoch, 2);
      await rejects(old.answer(1, "zombie"), "RUN_STALE_LEASE");
      await rejects(old.end("completed"), "RUN_STALE_LEASE");
      assert.equal(await old.renew(), false);
      await old.release();
      await owner.answer(1, "mine");
      assert.deepEqual(await texts(other, "r1"), ["a", "mine"]);
    });
    test("a run can be claimed after the clock was set back by days", async ({ store, clock, another }) => {
      const old = await begin(store, "r1");
      clock.jumpWallClock(-3 * 24 * 3600_000);
      const other = await another();
      assert.equal((await other.listInterrupted()).length, 1);
      const owner = await claim(other, "r1");
      assert.equal(owner?.lease.epoch, 2);
      await rejects(old.answer(1, "zombie"), "RUN_STALE_LEASE");
      await owner.answer(1, "mine");
      assert.equal(await claim(store, "r1"), undefined);
    });
    test("a live owner on this host keeps its run past its lease", async ({ store, clock, another }) => {
      await begin(store, "r1");
      await clock.advance(100 * store.leaseMs);
      assert.equal(await claim(await another("this host"), "r1"), undefined);
      assert.equal((await claim(await another(), "r1"))?.lease.epoch, 2);
    });
    test("a dead owner on this host is detected immediately", async ({ store, processes, another }) => {
      await begin(store, "r1");
      const other = await another("this host");
      processes.reboot();
      assert.equal((await other.listInterrupted()).length, 1);
      assert.equal((await claim(other, "r1"))?.lease.epoch, 2);
    });
    test("one of many claims wins", async ({ store, clock, another }) => {
      await begin(store, "r1");
      await clock.advance(LEASE_MS + 1);
      const others = await Promise.all(Array.from({ length: 8 }, () => another()));
      const owners = await Promise.all(others.map((other) => claim(other, "r1")));
      assert.equal(owners.filter((owner) => owner !== undefined).length, 1);
    });
    test("a write or renewal extends a lease, a release ends it", async ({ store, clock, another }) => {
      const owner = await begin(store, "r1");
      const other = await another();
      await clock.advance(LEASE_MS - 1);
      await owner.answer(1, "x");
      await clock.advance(LEASE_MS - 1);
      assert.equal(await owner.renew(), true);
      await clock.advance(LEASE_MS - 1);
      assert.equal(await claim(other, "r1"), undefined);
      await owner.release();
      assert.equal((await claim(other, "r1"))?.lease.epoch, 2);
    });
    test("claims without progress are counted", async ({ store, clock, another }) => {
      const deaths = async () => (await store.head("r1"))?.deaths;
      await begin(store, "r1");
      assert.equal(await deaths(), 0);
      const other = await another();
      await clock.advance(LEASE_MS + 1);
      await claim(store, "r1");
      await clock.advance(LEASE_MS + 1);
      const owner = await claim(other, "r1");
      assert.equal(await deaths(), 2);
      // Starting an effect does not count as progress.
      await owner!.write({ entries: [effect(1, 0, "started")] });
      assert.equal(await deaths(), 2);
      await owner!.answer(1, "x");
      assert.equal(await deaths(), 0);
      await clock.advance(LEASE_MS + 1);
      const last = await claim(store, "r1");
      assert.equal(await deaths(), 1);
      await last!.release();
      assert.equal(await deaths(), 0);
    });
    test("a released run keeps its record", async ({ store }) => {
      const owner = await begin(store, "r1");
      await owner.write({ entries: [response(1, "x")], head: { step: 1 }, release: true });
      assert.deepEqual(
        (await store.listInterrupted()).map(({ head }) => head.runId),
        ["r1"],
      );
      assert.equal((await store.load("r1"))?.transcript.length, 2);
    });
  });

  describe("ledger", () => {
    test("an effect is written together with its response", async ({ store }) => {
      const owner = await begin(store, "r1");
      await owner.write({ entries: [response(1, "x"), effect(1, 0, "started")], head: { step: 1 } });
      assert.deepEqual(
        (await store.effects("r1")).map(({ id, state }) => [id, state]),
        [["r1.1.0", "started"]],
      );
      await owner.write({
        entries: [effect(1, 0, "done", { output: { sent: true } }), effect(1, 1, "started")],
      });
      assert.deepEqual(
        (await store.effects("r1")).map(({ id, state, output }) => [id, state, output]),
        [
          ["r1.1.0", "done", { sent: true }],
          ["r1.1.1", "started", null],
        ],
      );
      assert.deepEqual((await store.load("r1"))?.effects, await store.effects("r1"));
    });
    test("a stale owner cannot change the ledger", async ({ store, clock, another }) => {
      const old = await begin(store, "r1");
      await old.write({ entries: [effect(1, 0, "started")] });
      await clock.advance(LEASE_MS + 1);
      await claim(await another(), "r1");
      await rejects(old.write({ entries: [effect(1, 0, "done")] }), "RUN_STALE_LEASE");
      assert.equal((await store.effects("r1"))[0]?.state, "started");
    });
    test("a parked run can be resumed after a human resolved its effect", async ({ store }) => {
      const owner = await begin(store, "r1");
      const error = { code: "RUN_NEEDS_HUMAN", message: "m", hint: null };
      await owner.end("needs-human", {
        entries: [0, 1, 2].map((call) => effect(1, call, "unknown")),
        head: { error },
      });
      assert.equal(await claim(store, "r1"), undefined);
      assert.deepEqual(await store.listInterrupted(), []);
      const done = await store.resolve("r1.1.0", { outcome: "done", output: { id: 7 } });
      assert.deepEqual([done.state, done.output], ["done", { id: 7 }]);
      assert.equal((await store.resolve("r1.1.1", { outcome: "retry" })).state, "prepared");
      assert.equal((await store.head("r1"))?.status, "needs-human");
      const failed = await store.resolve("r1.1.2", { outcome: "fail", reason: "bounced" });
      assert.deepEqual([failed.state, failed.error], ["failed", "bounced"]);
      assert.equal((await store.head("r1"))?.status, "running");
      assert.notEqual(await claim(store, "r1"), undefined);
      await rejects(owner.answer(1, "z"), "RUN_STALE_LEASE");
    });
    test("only an effect with an unknown outcome can be resolved", async ({ store }) => {
      const owner = await begin(store, "r1");
      await owner.write({ entries: [effect(1, 0, "unknown")] });
      await rejects(store.resolve("r1.1.0", { outcome: "done" }), "RUN_BUSY");
      await owner.release();
      await store.resolve("r1.1.0", { outcome: "done" });
      await rejects(store.resolve("r1.1.0", { outcome: "retry" }), "EFFECT_SETTLED");
      await rejects(store.resolve("r1.9.9", { outcome: "retry" }), "EFFECT_UNKNOWN");
      await rejects(store.resolve("nonsense", { outcome: "retry" }), "EFFECT_UNKNOWN");
    });
  });
}
