import { expect, test } from "vitest";
import { entryRow, headRow, journalWrite } from "../../testing/journal-rows.ts";
import { createSimulatedClock } from "../../testing/simulated-clock.ts";
import { createPostgresBatches, type Query } from "./postgres-batches.ts";

const LEASE_MS = 30_000;

test("a lease lasts from the moment at which it is sent, not from that at which its run began to wait", async () => {
  const clock = createSimulatedClock();
  const busy = Promise.withResolvers<void>();
  const sent: (readonly [string, string])[] = [];
  // A server that answers nothing until it is free.
  const query = (async (name: string, ...values: readonly unknown[]) => {
    sent.push([name, JSON.stringify(values)]);
    await busy.promise;
    const rows =
      name === "insert" ? ["a", "b", "c", "queued"].map((id) => ({ id })) : [{ write: 0 }, { write: 1 }];
    return { rows, count: rows.length, repeated: false };
  }) as unknown as Query;
  const { begin, write } = createPostgresBatches(query, clock);
  const first = [begin(headRow("a", { leaseUntilMs: LEASE_MS }), [])];
  await new Promise(setImmediate);
  first.push(begin(headRow("b", { leaseUntilMs: LEASE_MS }), []));
  await new Promise(setImmediate);
  expect(sent.map(([name]) => name)).toEqual(["insert", "insert"]);
  const waiting = [
    begin(headRow("c", { leaseUntilMs: LEASE_MS }), []),
    begin(headRow("queued", { leaseUntilMs: 0, owner: null }), []),
    write(journalWrite("a", 1, [entryRow(1, "response")], { leaseUntilMs: LEASE_MS + 1 })),
    write(journalWrite("b", 1, [], { leaseUntilMs: 0 })),
  ];
  await clock.advance(20_000);
  busy.resolve();
  await Promise.all([...first, ...waiting]);
  const [, , inserted, written] = sent;
  expect([sent[0]![1], inserted![1]]).toEqual([
    expect.stringContaining(`[${LEASE_MS}]`),
    expect.stringContaining(`[${LEASE_MS + 20_000},0]`),
  ]);
  expect(written![1]).toContain(`[${LEASE_MS + 20_001},0]`);
});
