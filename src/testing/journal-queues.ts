// The part of the conformance suite of journals that is about queues, rate limits and schedules.
import { deepEqual, equal } from "node:assert/strict";
import type { HeadRow, Journal } from "../run/journal/journal.ts";
import { headRow, journalWrite, type Test } from "./journal-rows.ts";

const queued = (journal: Journal, id: string, change: Partial<HeadRow> = {}) =>
  journal.insert(
    headRow(id, { queue: "q", status: "queued", owner: null, leaseUntilMs: 0, caller: "a", ...change }),
    [],
  );
const claim = { queue: "q", worker: "w1/", limits: {}, leaseUntilMs: 900, nowMs: 5 };

export function declareQueues(test: Test): void {
  declareClaims(test);
  declareSettings(test);
}

function declareClaims(test: Test): void {
  test("queued runs are claimed within the limits, fairly, and each once", async (journal, place) => {
    for (const [id, caller] of [
      ["a1", "a"],
      ["a2", "a"],
      ["a3", "a"],
      ["b1", "b"],
    ] as const)
      await queued(journal, id, { caller });
    await queued(journal, "other", { queue: "elsewhere" });
    const other = journal.survives ? await place.open() : journal;
    const limits = { total: 3 };
    const claims = await Promise.all([
      journal.claimQueued({ ...claim, limits, owners: ["w1/1", "w1/2"] }),
      other.claimQueued({ ...claim, worker: "w2/", limits, owners: ["w2/1", "w2/2"] }),
    ]);
    const heads = claims.flat();
    deepEqual(heads.map(({ id }) => id).sort(), ["a1", "a2", "b1"]);
    for (const { status, epoch, deaths, leaseUntilMs } of heads)
      deepEqual(
        { status, epoch, deaths, leaseUntilMs },
        { status: "running", epoch: 2, deaths: 0, leaseUntilMs: 900 },
      );
    deepEqual(await journal.claimQueued({ ...claim, limits, owners: ["w1/3"] }), []);
    const mine = claims[0]!.length;
    deepEqual(await journal.claimQueued({ ...claim, limits: { perWorker: mine }, owners: ["w1/3"] }), []);
    const [next] = await journal.claimQueued({ ...claim, owners: ["w1/3", "w1/4"] });
    equal(next!.id, "a3");
    if (other !== journal) await other[Symbol.asyncDispose]();
  });
  test("a worker claims only runs of its agent; those of others count for the limits", async (journal) => {
    await queued(journal, "r1", { agentId: "x" });
    await queued(journal, "r2", { agentId: "y" });
    const ids = async (agentId: string, limits: object = {}) =>
      (await journal.claimQueued({ ...claim, agentId, limits, owners: [`w1/${agentId}`] })).map(
        ({ id }) => id,
      );
    deepEqual(await ids("z"), []);
    const old = { ...claim, agentId: "x", definition: "old", owners: ["w1/old"] };
    deepEqual(await journal.claimQueued(old), []);
    deepEqual(await ids("y"), ["r2"]);
    deepEqual(await ids("x", { total: 1 }), []);
    deepEqual(await ids("x", { total: 2 }), ["r1"]);
  });
  declareSlots(test);
}

function declareSettings(test: Test): void {
  test("the settings of a queue are shared by all processes", async (journal, place) => {
    equal((await journal.readQueues()).size, 0);
    const settings = { total: 3, perCaller: 1, calls: { amount: 10, perMs: 60_000 } };
    await journal.writeQueue("mail", { total: 1 });
    await journal.writeQueue("mail", settings);
    await journal.writeQueue("gone", { total: 1 });
    await journal.writeQueue("gone", null);
    const other = journal.survives ? await place.open() : journal;
    deepEqual([...(await other.readQueues())], [["mail", settings]]);
    if (other !== journal) await other[Symbol.asyncDispose]();
  });
  test("calls and tokens are limited per queue across processes", async (journal, place) => {
    const calls = { limit: { amount: 2, perMs: 1000 }, used: 1 };
    equal(await journal.takeRate({ queue: "q", calls, nowMs: 0 }), 0);
    const other = journal.survives ? await place.open() : journal;
    equal(await other.takeRate({ queue: "q", calls, nowMs: 0 }), 0);
    if (other !== journal) await other[Symbol.asyncDispose]();
    equal(await journal.takeRate({ queue: "q", calls, nowMs: 0 }), 500);
    equal(await journal.takeRate({ queue: "other", calls, nowMs: 0 }), 0);
    equal(await journal.takeRate({ queue: "q", calls, nowMs: 500 }), 0);
    const tokens = { limit: { amount: 100, perMs: 1000 }, used: 150 };
    equal(await journal.takeRate({ queue: "q", tokens, nowMs: 500, force: true }), 0);
    equal(await journal.takeRate({ queue: "q", tokens: { ...tokens, used: 1 }, nowMs: 500 }), 510);
  });
  test("a tick is handled once, and no earlier tick after it", async (journal) => {
    equal(await journal.readTick("nightly"), undefined);
    deepEqual(
      await Promise.all([journal.writeTick("nightly", 10), journal.writeTick("nightly", 10)]).then((all) =>
        all.sort(),
      ),
      [false, true],
    );
    equal(await journal.writeTick("nightly", 9), false);
    equal(await journal.writeTick("nightly", 20), true);
    equal(await journal.readTick("nightly"), 20);
  });
}

function declareSlots(test: Test): void {
  test("a waiting run holds no slot and needs one when it is due", async (journal) => {
    await queued(journal, "r", { model: "m" });
    const limits = { total: 1, perModel: 1 };
    const [head] = await journal.claimQueued({ ...claim, limits, owners: ["w1/1"] });
    const asleep = { leaseUntilMs: 0, head: { status: "waiting", wakeMs: 50 } } as const;
    equal(await journal.write(journalWrite("r", 1, [], { ...asleep, epoch: head!.epoch })), "written");
    await queued(journal, "s", { model: "m" });
    const [second] = await journal.claimQueued({ ...claim, limits, owners: ["w1/2"] });
    equal(second!.id, "s");
    deepEqual(await journal.claimQueued({ ...claim, limits, owners: ["w1/3"], nowMs: 60 }), []);
    const end = { leaseUntilMs: 0, head: { status: "completed" }, epoch: second!.epoch } as const;
    equal(await journal.write(journalWrite("s", 1, [], end)), "written");
    deepEqual(await journal.claimQueued({ ...claim, limits, owners: ["w1/3"], nowMs: 49 }), []);
    const [woken] = await journal.claimQueued({ ...claim, limits, owners: ["w1/3"], nowMs: 50 });
    deepEqual([woken!.id, woken!.model], ["r", "m"]);
  });
}
