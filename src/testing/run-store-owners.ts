// Leases and the ledger: a part of the suite in run-store-conformance.ts.
import assert from "node:assert/strict";
import {
  assistant,
  change,
  type Declare,
  type Effect,
  effect,
  info,
  LEASE_MS,
  rejects,
  user,
} from "./run-store-bench.ts";

export function declareOwners({ describe, test }: Declare): void {
  describe("leases", () => {
    test("an owned run is not interrupted and cannot be claimed", async ({ store, another }) => {
      await store.begin(info("r1"), []);
      const other = await another();
      assert.deepEqual(await other.listInterrupted(), []);
      assert.equal(await other.claim("r1"), undefined);
      await rejects(other.delete("r1"), "RUN_BUSY");
    });
    test("a lease expires, and the old owner can no longer write", async ({ store, clock, another }) => {
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
    test("a run can be claimed after the clock was set back by days", async ({ store, clock, another }) => {
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
    test("a live owner on this host keeps its run past its lease", async ({ store, clock, another }) => {
      await store.begin(info("r1"), [user("a")]);
      await clock.advance(100 * store.leaseMs);
      assert.equal(await (await another("this host")).claim("r1"), undefined);
      assert.equal((await (await another()).claim("r1"))?.epoch, 2);
    });
    test("a dead owner on this host is detected at once", async ({ store, processes, another }) => {
      await store.begin(info("r1"), []);
      const other = await another("this host");
      processes.reboot();
      assert.equal((await other.listInterrupted()).length, 1);
      assert.equal((await other.claim("r1"))?.epoch, 2);
    });
    test("one of many claims wins", async ({ store, clock, another }) => {
      await store.begin(info("r1"), []);
      await clock.advance(LEASE_MS + 1);
      const others = await Promise.all(Array.from({ length: 8 }, () => another()));
      const leases = await Promise.all(others.map((other) => other.claim("r1")));
      assert.equal(leases.filter((lease) => lease !== undefined).length, 1);
    });
    test("a save or renewal extends a lease, a release ends it", async ({ store, clock, another }) => {
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
    test("claims without progress are counted", async ({ store, clock, another }) => {
      const deaths = async () => (await store.head("r1"))?.deaths;
      await store.begin(info("r1"), [user("a")]);
      assert.equal(await deaths(), 0);
      const other = await another();
      await clock.advance(LEASE_MS + 1);
      await store.claim("r1");
      await clock.advance(LEASE_MS + 1);
      const lease = await other.claim("r1");
      assert.equal(await deaths(), 2);
      // Starting an effect does not count as progress.
      await other.save(lease!, { ...change(1, []), effects: [effect("r1", 1, 0)] });
      assert.equal(await deaths(), 2);
      await other.save(lease!, change(1, [assistant(1, "x")]));
      assert.equal(await deaths(), 0);
      await clock.advance(LEASE_MS + 1);
      const last = await store.claim("r1");
      assert.equal(await deaths(), 1);
      await store.release(last!);
      assert.equal(await deaths(), 0);
    });
    test("a released run keeps its record", async ({ store }) => {
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
    test("an effect is saved together with its message", async ({ store }) => {
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
    test("a stale owner cannot change the ledger", async ({ store, clock, another }) => {
      const old = await store.begin(info("r1"), [user("a")]);
      await store.save(old, { ...change(1, []), effects: [effect("r1", 1, 0)] });
      await clock.advance(LEASE_MS + 1);
      await (await another()).claim("r1");
      const done: Effect = { ...effect("r1", 1, 0), state: "done" };
      await rejects(store.save(old, { ...change(1, []), effects: [done] }), "RUN_STALE_LEASE");
      assert.equal((await store.effects("r1"))[0]?.state, "prepared");
    });
    test("a parked run can be resumed after a human resolved its effect", async ({ store }) => {
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
    test("only an effect with an unknown outcome can be resolved", async ({ store }) => {
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
}
