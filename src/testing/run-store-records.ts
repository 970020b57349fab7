// Records, concurrent readers and secrets: a part of the suite in run-store-conformance.ts.
import assert from "node:assert/strict";
import { entryOf } from "../run/log/entry.ts";
import { begin, type Declare, effect, info, longRun, rejects, response, texts } from "./run-store-bench.ts";

export function declareRecords({ describe, test }: Declare): void {
  describe("writing and loading", () => {
    test("an unknown run is not an error", async ({ store }) => {
      assert.equal(await store.load("no-such-run"), undefined);
      assert.equal(await store.head("no-such-run"), undefined);
      assert.equal(await store.delete("no-such-run"), false);
      assert.deepEqual(await store.list(), []);
    });
    test("a run loads as it was written", async ({ store, clock }) => {
      const owner = await begin(store, "r1", "hello");
      const head = { step: 1, inputTokens: 3, outputTokens: 2, messages: 2 };
      await owner.write({ entries: [response(1, "hi")], head });
      const record = await store.load("r1");
      assert.deepEqual(await texts(store, "r1"), ["hello", "hi"]);
      assert.deepEqual(record?.info, info("r1"));
      assert.equal(record.head.status, "running");
      assert.equal(record.head.step, 1);
      assert.deepEqual(record.head.usage, { inputTokens: 3, outputTokens: 2 });
      assert.equal(record.head.updatedAtMs, clock.nowMs());
    });
    test("a write appends and changes nothing else", async ({ store }) => {
      await longRun(store, "r1", 20);
      assert.equal((await store.history("r1")).length, 21);
      const [last, ...none] = await store.history("r1", 20);
      assert.deepEqual([last?.step, none], [20, []]);
    });
    test("a second run with the same id is refused", async ({ store }) => {
      await begin(store, "r1", "a");
      await rejects(begin(store, "r1", "b"), "RUN_ID_TAKEN");
      assert.deepEqual(await texts(store, "r1"), ["a"]);
    });
    test("a write at the wrong position is refused and writes nothing", async ({ store }) => {
      const owner = await longRun(store, "r1", 2);
      const late = owner.write({ seq: 7, entries: [response(3, "gap")], head: { step: 3 } });
      await rejects(late, "RUN_OUT_OF_ORDER");
      assert.equal((await store.load("r1"))?.transcript.length, 3);
    });
    test("a write that is repeated because its reply was lost is applied once", async ({ store }) => {
      const owner = await begin(store, "r1", "a");
      for (let i = 0; i < 2; i += 1)
        await owner.write({ seq: 1, entries: [response(1, "x")], head: { step: 1 } });
      const end = { seq: 2, head: { output: "end" } };
      for (let i = 0; i < 2; i += 1) await owner.end("completed", end);
      assert.deepEqual(await texts(store, "r1"), ["a", "x"]);
      assert.equal((await store.load("r1"))?.output, "end");
    });
    test("bytes, emoji, long and empty texts round-trip", async ({ store }) => {
      const owner = await begin(store, "r1", `${"é🙂\u0000".repeat(30_000)}`);
      const file = { type: "file", data: new Uint8Array([0, 255, 7]), mediaType: "image/png" };
      const message = { role: "user", content: [file] };
      await owner.write({ entries: [entryOf({ step: 1, kind: "message", call: 0 }, { id: "m", message })] });
      const [long, odd] = (await store.load("r1"))!.transcript;
      assert.equal(String(long?.message.content).length, 30_000 * 4);
      assert.deepEqual(odd?.message, message);
    });
    test("ended runs keep status, output and error", async ({ store }) => {
      for (const status of ["completed", "failed", "cancelled", "timeout", "killed"] as const) {
        const owner = await begin(store, status);
        const error = status === "completed" ? null : { code: "INTERNAL", message: "why", hint: null };
        await owner.end(status, { head: { output: status === "completed" ? "out" : null, error } });
        const record = await store.load(status);
        assert.equal(record?.head.status, status);
        assert.deepEqual(record.error, error);
        await rejects(owner.answer(1, "late"), "RUN_STALE_LEASE");
      }
      assert.equal((await store.listInterrupted()).length, 0);
    });
    test("lists filter by status and agent, newest first", async ({ store }) => {
      for (const id of ["a", "b", "c"]) await begin(store, id, "go", { agentId: id === "b" ? "x" : "y" });
      const ids = async (query: object) => (await store.list(query)).map(({ runId }) => runId);
      assert.deepEqual(await ids({}), ["c", "b", "a"]);
      assert.deepEqual(await ids({ agentId: "y", limit: 1 }), ["c"]);
      assert.deepEqual(await store.list({ statuses: ["failed"] }), []);
    });
    test("phases keep their outputs by position", async ({ store }) => {
      const owner = await longRun(store, "r1", 2);
      const outputs = [
        { name: "same", output: "one", fellBack: false },
        { name: "same", output: "two", fellBack: true },
      ];
      for (const [i, value] of outputs.entries())
        await owner.write({
          entries: [entryOf({ step: i + 1, kind: "phase", call: i }, value)],
          head: { phase: i + 1 },
        });
      assert.deepEqual(
        (await store.load("r1"))?.phases,
        outputs.map((each, position) => ({ position, ...each })),
      );
    });
  });

  describe("concurrent reads", () => {
    test("a run is never reported as damaged while it is being written", async ({ open }) => {
      const [store, other] = [await open({}), await open({})];
      const owner = await begin(store, "r1");
      let busy = true;
      const reading = (async () => {
        const counts: number[] = [];
        while (busy) {
          counts.push((await other.load("r1"))!.transcript.length);
          await new Promise((resolve) => setImmediate(resolve));
        }
        return counts;
      })();
      for (let step = 1; step <= 50; step += 1) await owner.answer(step, `s${step}`);
      busy = false;
      const counts = await reading;
      assert.ok(counts.every((count, i) => i === 0 || count >= counts[i - 1]!));
    });
  });

  describe("secrets", () => {
    const token = `ghp_${"1234567890abcdefghijklmnopqrstuvwx12"}`;
    test("are redacted before they are stored, and counted", async ({ store }) => {
      const owner = await begin(store, "r1", `my token is ${token}`);
      assert.equal(owner.redactions, 1);
      const entries = [response(1, `use ${token} and ${token}`), effect(1, 0, "started")];
      await owner.write({ entries, head: { step: 1 } });
      assert.equal(owner.redactions, 3);
      const record = await store.load("r1");
      assert.equal(JSON.stringify(record).includes(token), false);
      assert.equal(record?.head.redactions, 3);
      assert.equal(record?.effects[0]?.inputRedacted, true);
    });
    test("with a key, content is encrypted and bound to its row", async ({ open }) => {
      const encryptionKey = new Uint8Array(32).fill(7);
      const sealed = await open({ encryptionKey });
      const owner = await begin(sealed, "r1", "the launch code is 1234");
      const entries = [response(1, "1234"), effect(1, 0, "done", { output: "1234" })];
      await owner.write({ entries, head: { step: 1 } });
      const fork = await sealed.fork("r1", 1);
      assert.deepEqual(await texts(sealed, fork.runId), ["the launch code is 1234", "1234"]);
      assert.equal((await sealed.load("r1"))?.effects[0]?.output, "1234");
      const plain = await open({});
      await rejects(plain.load("r1"), "RUN_KEY_WRONG");
      await rejects((await open({ encryptionKey: new Uint8Array(32).fill(8) })).load("r1"), "RUN_KEY_WRONG");
      await begin(plain, "r2", "planted");
      await rejects(sealed.load("r2"), "RUN_PLAINTEXT");
    });
    test("an effect of an encrypted run cannot be resolved without the key", async ({ open }) => {
      const sealed = await open({ encryptionKey: new Uint8Array(32).fill(7) });
      const owner = await begin(sealed, "r1");
      await owner.write({ entries: [effect(1, 0, "started")] });
      await owner.release();
      const without = (await open({})).resolve("r1.1.0", { outcome: "fail", reason: "no key" });
      await rejects(without, "RUN_KEY_WRONG");
      const resolved = await sealed.resolve("r1.1.0", { outcome: "fail", reason: "with it" });
      assert.equal(resolved.error, "with it");
      assert.equal((await sealed.effects("r1"))[0]?.state, "failed");
    });
  });
}
