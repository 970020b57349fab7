// The conformance suite of journals: memory, SQLite, PostgreSQL, and custom ones. It checks the contract in
// src/run/journal/journal.ts. Pass `describe` and `test` of your test runner.
import { deepEqual, equal, rejects } from "node:assert/strict";
import type { Journal } from "../run/journal/journal.ts";
import { declareQueues } from "./journal-queues.ts";
import { entryRow, headRow, type JournalPlace, journalWrite, type Test } from "./journal-rows.ts";
import { approval, declareWaits } from "./journal-waits.ts";
import type { SuiteRunner } from "./run-store-conformance.ts";

const plain = (rows: readonly { step: number; kind: string; call: number; runId: string }[]) =>
  rows.map(({ runId, step, kind, call }) => `${runId}:${step}:${kind}:${call}`);

/** Declares the suite for one kind of journal; `createPlace` creates an empty place for each test. */
export function journalConformance(
  runner: SuiteRunner,
  name: string,
  createPlace: () => Promise<JournalPlace>,
): void {
  const test = (title: string, body: (journal: Journal, place: JournalPlace) => Promise<void>) =>
    runner.test(title, async () => {
      const place = await createPlace();
      try {
        await using journal = await place.open();
        await body(journal, place);
      } finally {
        await place.dispose();
      }
    });
  runner.describe(`${name} journal`, () => {
    declareWrites(test);
    declareLeases(test);
    declareWaits(test);
    declareNotifications(test);
    declareQueues(test);
    declareForks(test);
  });
}

function declareWrites(test: Test): void {
  test("a write is applied once, in order, and only by the owner", async (journal) => {
    equal(await journal.insert(headRow("r"), [entryRow(0, "input")]), true);
    equal(await journal.insert(headRow("r", { owner: "you" }), []), false);
    const first = journalWrite("r", 1, [entryRow(1, "response")], { head: { step: 1 } });
    equal(await journal.write(first), "written");
    equal(await journal.write(first), "written");
    equal(await journal.write(journalWrite("r", 3, [])), "out-of-order");
    equal(await journal.write(journalWrite("r", 2, [], { epoch: 0 })), "stale");
    equal(await journal.write(journalWrite("x", 1, [])), "missing");
    deepEqual(plain(await journal.readEntries("r")), ["r:0:input:0", "r:1:response:0"]);
    const { seq, step, leaseUntilMs } = (await journal.readHead("r"))!;
    deepEqual({ seq, step, leaseUntilMs }, { seq: 1, step: 1, leaseUntilMs: 200 });
  });
  test("a later write replaces an entry; reading after a write returns only entries changed since", async (journal) => {
    await journal.insert(headRow("r"), []);
    const started = entryRow(1, "effect", 0, { state: "started", class: "once", name: "pay", callId: "c" });
    await journal.write(journalWrite("r", 1, [entryRow(1, "response"), started], { sync: "lazy" }));
    await journal.write(journalWrite("r", 2, [{ ...started, state: "done", body: "1".repeat(3_000_000) }]));
    const [entry, ...others] = await journal.readEntries("r", 1);
    deepEqual([entry!.state, entry!.body!.length, entry!.seq, others.length], ["done", 3_000_000, 2, 0]);
    deepEqual(plain(await journal.readEntries("r")), ["r:1:effect:0", "r:1:response:0"]);
    const states = await journal.readStates("r");
    deepEqual(
      states.map(({ kind, state, body }) => [kind, state, body]),
      [
        ["effect", "done", null],
        ["response", "done", null],
      ],
    );
  });
  test("an ended run takes no more writes", async (journal) => {
    await journal.insert(headRow("r"), []);
    const end = journalWrite("r", 1, [], { leaseUntilMs: 0, head: { status: "completed", output: "o" } });
    equal(await journal.write(end), "written");
    equal(await journal.write(journalWrite("r", 2, [])), "stale");
    const { status, owner, output } = (await journal.readHead("r"))!;
    deepEqual({ status, owner, output }, { status: "completed", owner: null, output: "o" });
  });
  test("parts of a stream are replaced from a position and end with their response", async (journal) => {
    await journal.insert(headRow("r"), []);
    equal(await journal.putParts("r", 1, 1, 0, ["a", "b", "c"]), true);
    equal(await journal.putParts("r", 1, 1, 1, ["x"]), true);
    equal(await journal.putParts("r", 0, 1, 0, ["old owner"]), false);
    deepEqual((await journal.readParts("r", 1, 0)).parts, ["a", "x"]);
    await journal.write(journalWrite("r", 1, [entryRow(1, "response")], { head: { step: 1 } }));
    deepEqual((await journal.readParts("r", 1, 0)).parts, []);
  });
}

function declareLeases(test: Test): void {
  test("a claim raises the epoch once, even when its reply was lost", async (journal) => {
    await journal.insert(headRow("r"), []);
    const claim = { runId: "r", seenEpoch: 1, owner: "you", leaseUntilMs: 300, nowMs: 3 };
    equal(await journal.swapLease(claim), true);
    equal(await journal.swapLease(claim), true);
    equal(await journal.swapLease({ ...claim, owner: "they" }), false);
    equal(await journal.write(journalWrite("r", 1, [])), "stale");
    equal(await journal.renewLease("r", 1, 900), false);
    equal(await journal.renewLease("r", 2, 900), true);
    const { epoch, deaths } = (await journal.readHead("r"))!;
    deepEqual({ epoch, deaths }, { epoch: 2, deaths: 1 });
    equal(await journal.releaseLease("r", 2), true);
    equal((await journal.readHead("r"))!.deaths, 0);
  });
  test("a run that has not ended can be claimed, an ended one cannot", async (journal) => {
    for (const [id, status, expected] of [
      ["q", "queued", true],
      ["w", "waiting", true],
      ["n", "needs-human", true],
      ["c", "cancelled", false],
      ["d", "completed", false],
    ] as const) {
      await journal.insert(headRow(id, { status, owner: null, leaseUntilMs: 0 }), []);
      const claim = { runId: id, seenEpoch: 1, owner: "you", leaseUntilMs: 300, nowMs: 3 };
      equal(await journal.swapLease(claim), expected, status);
      equal((await journal.readHead(id))!.status, expected ? "running" : status);
    }
  });
  test("a settled effect reopens its run and fences its owner", async (journal) => {
    await journal.insert(headRow("r"), []);
    const unknown = entryRow(1, "effect", 0, { state: "unknown", class: "once", name: "pay", callId: "c" });
    const park = { leaseUntilMs: 0, head: { status: "needs-human" } } as const;
    await journal.write(journalWrite("r", 1, [unknown], park));
    const settlement = { runId: "r", seenEpoch: 1, nowMs: 3, entry: { ...unknown, state: "done" as const } };
    equal(await journal.settle({ ...settlement, seenEpoch: 0 }), false);
    equal(await journal.settle(settlement), true);
    const { status, epoch, owner } = (await journal.readHead("r"))!;
    deepEqual({ status, epoch, owner }, { status: "running", epoch: 2, owner: null });
    equal((await journal.readEntries("r"))[0]!.state, "done");
  });
}

function declareNotifications(test: Test): void {
  test("followers and owners are notified of changes by another process", async (journal, place) => {
    if (!journal.survives) return;
    await journal.insert(headRow("r"), []);
    await using other = await place.open();
    const { signal } = new AbortController();
    const changed = journal.changed("r", 0, signal);
    equal(await other.write(journalWrite("r", 1, [entryRow(1, "response")])), "written");
    await changed;
    await journal.changed("r", 0, signal);
    // Whichever comes first: a write at the same time is never missed.
    for (let seq = 2; seq <= 20; seq += 1) {
      const write = () => other.write(journalWrite("r", seq, [entryRow(seq, "response")]));
      const notified = () => journal.changed("r", seq - 1, signal);
      await Promise.all(seq % 2 === 0 ? [write(), notified()] : [notified(), write()]);
    }
    const signalled = journal.signalled("r", signal);
    equal(await other.send("r", { id: "m", name: "go", body: "1", sentMs: 5 }), "accepted");
    await signalled;
    equal((await journal.readInbox("r")).length, 1);
  });
  test("waiting for changes ends when its signal aborts", async (journal) => {
    await journal.insert(headRow("r"), []);
    const abort = new AbortController();
    const waiting = [journal.changed("r", 0, abort.signal), journal.signalled("r", abort.signal)];
    abort.abort();
    await Promise.all(waiting);
  });
  test("concurrent writes of many runs are applied one by one; a refused one affects no other", async (journal) => {
    const ids = Array.from({ length: 50 }, (_, i) => `r${i}`);
    await Promise.all(ids.map((id) => journal.insert(headRow(id), [entryRow(0, "input")])));
    const verdicts = await Promise.all(
      ids.map((id, i) =>
        journal.write(
          journalWrite(id, 1, [entryRow(1, "response"), entryRow(1, "effect", i)], {
            ...(i % 5 === 0 ? { epoch: 0 } : {}),
            sync: i % 2 === 0 ? "lazy" : "full",
            head: { step: 1, output: i % 3 === 0 ? `output ${i}` : null },
          }),
        ),
      ),
    );
    deepEqual(
      verdicts,
      ids.map((_, i) => (i % 5 === 0 ? "stale" : "written")),
    );
    for (const [i, id] of ids.entries()) {
      const entries = await journal.readEntries(id);
      equal(entries.length, i % 5 === 0 ? 1 : 3);
      const { output } = (await journal.readHead(id))!;
      equal(output, i % 5 !== 0 && i % 3 === 0 ? `output ${i}` : null);
    }
  });
}

function declareForks(test: Test): void {
  const grow = async (journal: Journal) => {
    await journal.insert(headRow("r"), [entryRow(0, "input")]);
    for (const n of [1, 2, 3]) {
      const head = n === 3 ? ({ step: n, status: "completed" } as const) : { step: n };
      await journal.write(journalWrite("r", n, [entryRow(n, "response"), entryRow(n, "effect")], { head }));
    }
  };
  test("a fork shares the steps before it and continues independently", async (journal) => {
    await grow(journal);
    const fork = { forkOf: "r", forkStep: 1, step: 1 };
    equal(await journal.insert(headRow("f", { ...fork, forkStep: 9 }), []), false);
    equal(await journal.insert(headRow("f", { ...fork, forkOf: "x" }), []), false);
    equal(await journal.insert(headRow("f", fork), []), true);
    await journal.write(journalWrite("f", 1, [entryRow(2, "response")], { head: { step: 2 } }));
    deepEqual(plain(await journal.readEntries("f")), [
      ...["r:0:input:0", "r:1:effect:0", "r:1:response:0", "f:2:response:0"],
    ]);
    deepEqual(plain(await journal.readStates("f")), plain(await journal.readEntries("f")));
    deepEqual(plain(await journal.readEntries("f", 0)), ["f:2:response:0"]);
    deepEqual(plain(await journal.readEntries("f", 1)), []);
  });
  test("of runs inserted concurrently, each has its own head and entries; one that is refused affects no other", async (journal) => {
    await grow(journal);
    const fork = { forkOf: "r", step: 1, model: null };
    const heads = [
      headRow("r", { owner: "you" }),
      headRow("f", { ...fork, forkStep: 1 }),
      headRow("g", { ...fork, forkStep: 9 }),
      headRow("a", { caller: "ann", priority: 3, model: "m", wakeMs: 5 }),
      headRow("b", { thread: "t", owner: null, status: "queued", model: null }),
      headRow("b", { owner: "you" }),
    ];
    const inserted = await Promise.all(
      heads.map((head, i) =>
        journal.insert(head, i === 3 ? [entryRow(0, "input"), entryRow(0, "prepare")] : []),
      ),
    );
    deepEqual(inserted, [false, true, false, true, true, false]);
    for (const i of [1, 3, 4]) deepEqual(await journal.readHead(heads[i]!.id), heads[i]);
    deepEqual(plain(await journal.readEntries("a")), ["a:0:input:0", "a:0:prepare:0"]);
    deepEqual(plain(await journal.readEntries("b")), []);
  });
  test("a run is inserted with waits, and found by the start of its id or its queue", async (journal) => {
    const answered = { ...approval, state: "answered", answer: "yes" } as const;
    equal(await journal.insert(headRow("ab1", { queue: "q" }), [], [answered]), true);
    equal(await journal.insert(headRow("ab1", { owner: "you" }), [], [approval]), false);
    deepEqual(await journal.readWaits("ab1"), [answered]);
    for (const id of ["ab2", "a_3"]) await journal.insert(headRow(id), []);
    const found = async (query: Parameters<Journal["list"]>[0]) =>
      (await journal.list(query)).map(({ id }) => id);
    deepEqual(await found({ idPrefix: "ab" }), ["ab2", "ab1"]);
    deepEqual(await found({ idPrefix: "a_" }), ["a_3"]);
    deepEqual(await found({ queue: "q" }), ["ab1"]);
  });
  test("a prune keeps what remaining forks share, and is rolled back if one of them would not load", async (journal) => {
    await grow(journal);
    await journal.insert(headRow("f", { forkOf: "r", forkStep: 1, step: 1 }), []);
    const prune = (keepStep: number) =>
      journal.prune((lineage) => {
        deepEqual(lineage.map(({ id }) => id).sort(), ["f", "r"]);
        return {
          remove: [],
          stub: [{ runId: "r", epoch: 1, keepStep }],
          prove: [{ runId: "f", step: 1 }],
        };
      });
    await rejects(prune(0), { code: "RUN_DAMAGED" });
    equal((await journal.readHead("r"))!.status, "completed");
    await prune(1);
    equal((await journal.readHead("r"))!.status, "stub");
    deepEqual(plain(await journal.readEntries("f")).length, 3);
    deepEqual(
      (await journal.list({})).map(({ id }) => id),
      ["f"],
    );
    equal(await journal.insert(headRow("g", { forkOf: "r", forkStep: 1 }), []), false);
  });
  test("a pruned run is gone, and its id is never used again", async (journal) => {
    await grow(journal);
    await journal.prune(() => ({ remove: [{ runId: "r", epoch: 1 }], stub: [], prove: [] }));
    equal(await journal.readHead("r"), undefined);
    deepEqual(await journal.readEntries("r"), []);
    equal(await journal.insert(headRow("r"), []), false);
  });
}
