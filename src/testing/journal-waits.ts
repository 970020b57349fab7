// The part of the conformance suite of journals that is about waiting: answers, messages, cancels, and the runs that they wake.
import { deepEqual, equal } from "node:assert/strict";
import type { WaitRow } from "../run/journal/journal.ts";
import { entryRow, headRow, journalWrite, type Test } from "./journal-rows.ts";

/** An open request for approval. */
export const approval: WaitRow = {
  ...{ id: "w", kind: "approval", step: 1, call: 0, names: ["pay"], state: "open", dueMs: 50, digest: "d" },
  answer: null,
};
const wait = { leaseUntilMs: 0, head: { status: "waiting" }, waits: [approval] } as const;
const signal: WaitRow = { ...approval, id: "s", kind: "signal", names: ["stop"], dueMs: null };
const listening = { waits: [signal], leaseUntilMs: 0, head: { status: "waiting", wakeMs: 90 } } as const;
const message = { id: "m", name: "go", body: "1", sentMs: 5 };
const claim = { runId: "r", seenEpoch: 1, owner: "you", leaseUntilMs: 9, nowMs: 11 };

export function declareWaits(test: Test): void {
  declareAnswers(test);
  declareWakes(test);
}

function declareAnswers(test: Test): void {
  test("an approval is answered once, from anywhere, before it expires", async (journal, place) => {
    await journal.insert(headRow("r"), []);
    await journal.write(journalWrite("r", 1, [], wait));
    if (journal.survives) {
      await using other = await place.open();
      equal(await other.answer("r", "w", "yes", 10), "answered");
    } else equal(await journal.answer("r", "w", "yes", 10), "answered");
    equal(await journal.answer("r", "w", "yes", 10), "answered");
    equal(await journal.answer("r", "w", "no", 10), "closed");
    equal(await journal.answer("r", "x", "yes", 10), "missing");
    deepEqual(await journal.readWaits("r"), [{ ...approval, state: "answered", answer: "yes" }]);
    deepEqual(
      (await journal.list({ dueMs: 10 })).map(({ id, wakeMs }) => [id, wakeMs]),
      [["r", 10]],
    );
    equal(
      await journal.swapLease({ runId: "r", seenEpoch: 1, owner: "you", leaseUntilMs: 9, nowMs: 11 }),
      true,
    );
    const { status, deaths } = (await journal.readHead("r"))!;
    deepEqual({ status, deaths }, { status: "running", deaths: 0 });
  });
  test("an expired approval cannot be answered", async (journal) => {
    await journal.insert(headRow("r"), []);
    await journal.write(journalWrite("r", 1, [], wait));
    equal(await journal.answer("r", "w", "yes", 50), "expired");
  });
  test("a message is accepted once, before or while a run waits, and taken once", async (journal) => {
    await journal.insert(headRow("r"), []);
    equal(await journal.send("x", message), "missing");
    equal(await journal.send("r", message), "accepted");
    equal(await journal.send("r", { ...message, body: "2" }), "duplicate");
    deepEqual(await journal.readInbox("r"), [message]);
    await journal.write(journalWrite("r", 1, [], { taken: ["m"] }));
    deepEqual(await journal.readInbox("r"), []);
    await journal.swapLease(claim);
    const change = { ...listening, epoch: 2, head: { status: "waiting" } } as const;
    await journal.write(journalWrite("r", 2, [], change));
    equal((await journal.readHead("r"))!.wakeMs, null);
    await journal.send("r", { ...message, id: "n", name: "other" });
    equal((await journal.readHead("r"))!.wakeMs, null);
    await journal.send("r", { ...message, id: "o", name: "stop", sentMs: 7 });
    equal((await journal.readHead("r"))!.wakeMs, 7);
  });
  test("a request to cancel wakes a waiting run and notifies its owner", async (journal) => {
    await journal.insert(headRow("r"), []);
    const changed = journal.changed("r", 0, new AbortController().signal);
    const signalled = journal.signalled("r", new AbortController().signal);
    equal(await journal.requestCancel("r", 6), true);
    await Promise.all([changed, signalled]);
    equal((await journal.readHead("r"))!.cancelMs, 6);
    await journal.write(journalWrite("r", 1, [], { leaseUntilMs: 0, head: { status: "cancelled" } }));
    equal(await journal.requestCancel("r", 6), false);
    equal(await journal.requestCancel("x", 6), false);
  });
}

function declareWakes(test: Test): void {
  test("a waiting run is due immediately if its message arrived while it ran", async (journal) => {
    await journal.insert(headRow("r"), []);
    await journal.send("r", { ...message, name: "stop" });
    await journal.write(journalWrite("r", 1, [entryRow(1, "response")], { head: { step: 1 } }));
    await journal.write(journalWrite("r", 2, [], listening));
    deepEqual(
      (await journal.list({ dueMs: 5 })).map(({ id }) => id),
      ["r"],
    );
    await journal.swapLease(claim);
    await journal.write(journalWrite("r", 3, [], { ...listening, epoch: 2 }));
    equal((await journal.readHead("r"))!.wakeMs, 90);
  });
  test("an answer for a child run also wakes its ancestors that wait or run", async (journal) => {
    await journal.insert(headRow("r"), []);
    await journal.insert(headRow("c", { parentRunId: "r" }), []);
    await journal.insert(headRow("g", { parentRunId: "c" }), []);
    const waiting = { leaseUntilMs: 0, head: { status: "waiting", wakeMs: null } } as const;
    await journal.write(journalWrite("r", 1, [], waiting));
    await journal.write(journalWrite("g", 1, [], wait));
    equal(await journal.answer("g", "w", "yes", 10), "answered");
    await journal.write(journalWrite("c", 1, [], waiting));
    deepEqual((await journal.list({ dueMs: 10 })).map(({ id }) => id).sort(), ["c", "g", "r"]);
  });
  test("a decision about an effect of a child run wakes its parent", async (journal) => {
    await journal.insert(headRow("r"), []);
    await journal.insert(headRow("c", { parentRunId: "r" }), []);
    await journal.write(journalWrite("r", 1, [], { leaseUntilMs: 0, head: { status: "waiting" } }));
    const unknown = { ...entryRow(1, "effect"), state: "unknown" } as const;
    await journal.write(
      journalWrite("c", 1, [unknown], { leaseUntilMs: 0, head: { status: "needs-human" } }),
    );
    const entry = { ...unknown, state: "done" } as const;
    equal(await journal.settle({ runId: "c", seenEpoch: 1, entry, nowMs: 12 }), true);
    deepEqual(
      (await journal.list({ dueMs: 12 })).map(({ id }) => id),
      ["r"],
    );
  });
}
