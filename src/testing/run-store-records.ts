// Records, concurrent readers and secrets: a part of the suite in run-store-conformance.ts.
import assert from "node:assert/strict";
import {
  assistant,
  change,
  type Declare,
  type Effect,
  effect,
  info,
  rejects,
  type TranscriptEntry,
  text,
  user,
} from "./run-store-bench.ts";

export function declareRecords({ describe, test }: Declare): void {
  describe("saving and loading", () => {
    test("an unknown run is not an error", async ({ store }) => {
      assert.equal(await store.load("no-such-run"), undefined);
      assert.equal(await store.head("no-such-run"), undefined);
      assert.equal(await store.delete("no-such-run"), false);
      assert.deepEqual(await store.list(), []);
    });
    test("a run loads as it was saved", async ({ store, clock }) => {
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
    test("a save appends and changes nothing else", async ({ store }) => {
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
    test("a save at the wrong position is refused and writes nothing", async ({ store }) => {
      const lease = await store.begin(info("r1"), [user("a")]);
      await store.save(lease, change(1, [assistant(1, "x")]));
      await rejects(store.save(lease, change(1, [assistant(1, "other")])), "RUN_OUT_OF_ORDER");
      await rejects(store.save(lease, change(7, [assistant(2, "gap")])), "RUN_OUT_OF_ORDER");
      assert.equal((await store.load("r1"))?.transcript.length, 2);
    });
    test("a save that is repeated because its reply was lost is applied once", async ({ store }) => {
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
    test("bytes, emoji, long and empty texts round-trip", async ({ store }) => {
      const file = { type: "file" as const, data: new Uint8Array([0, 255, 7]), mediaType: "image/png" };
      const odd: TranscriptEntry = { step: 0, phase: 0, message: { role: "user", content: [file] } };
      const long = user(`${"é🙂\u0000".repeat(30_000)}`);
      await store.begin(info("r1"), [odd, long, user("")]);
      assert.deepEqual((await store.load("r1"))?.transcript, [odd, long, user("")]);
    });
    test("ended runs keep status, output and error", async ({ store }) => {
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

  describe("concurrent reads", () => {
    test("a run is never reported as damaged while it is being saved", async ({ open }) => {
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

  describe("secrets", () => {
    const token = `ghp_${"1234567890abcdefghijklmnopqrstuvwx12"}`;
    test("are redacted before they are stored, and counted", async ({ store }) => {
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
    test("with a key, content is encrypted and bound to its row", async ({ open }) => {
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
      await rejects((await open({ encryptionKey: new Uint8Array(32).fill(8) })).load("r1"), "RUN_KEY_WRONG");
      await plain.begin(info("r2"), [user("planted")]);
      await rejects(sealed.load("r2"), "RUN_PLAINTEXT");
    });
    test("an effect of an encrypted run cannot be resolved without the key", async ({ open }) => {
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
      const resolved = await sealed.resolve("r1.1.0", { outcome: "fail", reason: "with it" });
      assert.equal(resolved.error, "with it");
      assert.equal((await sealed.load("r1"))?.effects[0]?.state, "failed");
    });
  });
}
