import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { checkDocument, FLOW_STATUSES, type FlowDocument } from "./document.ts";
import { applyChange, decideStart, type FlowChange, newDocument, usedKeyOf } from "./transition.ts";

const NOW = Date.UTC(2026, 10, 15);
const flow = newDocument(
  {
    workflow: "report",
    agent: "anna",
    idempotency: "k1",
    step: "fetch",
    remaining: ["fetch", "write", "send"],
  },
  NOW,
);
const after = (change: FlowChange, from: FlowDocument = flow): FlowDocument => {
  const transition = applyChange(from, change, NOW + 1000);
  if (!("to" in transition)) throw new Error(JSON.stringify(transition));
  return transition.to;
};

describe("a change", () => {
  it("completes a step and continues with the next", () => {
    expect(after({ complete: ["fetch"] })).toMatchObject({
      completedSteps: ["fetch"],
      remainingSteps: ["write", "send"],
      currentStep: "write",
      status: "in_progress",
    });
  });

  it("sets the requested step", () => {
    expect(after({ complete: ["fetch"], step: "send" }).currentStep).toBe("send");
  });

  it("may complete the same step twice", () => {
    const once = after({ complete: ["fetch"] });
    const twice = applyChange(once, { complete: ["fetch"] }, NOW + 2000);
    expect(twice).toMatchObject({
      remarks: ["fetch was already complete"],
      to: { completedSteps: ["fetch"] },
    });
  });

  it("reports a step that was not listed", () => {
    expect(applyChange(flow, { complete: ["biuld"] }, NOW)).toMatchObject({
      remarks: [expect.stringContaining("not in the list")],
    });
  });

  it("keeps unknown fields", () => {
    expect(after({ complete: ["fetch"] }, { ...flow, custom: { deep: [1] } }).custom).toEqual({ deep: [1] });
  });

  it("leaves no remaining steps when finished", () => {
    expect(after({ status: "done" })).toMatchObject({ status: "done", remainingSteps: [] });
  });

  it("does not reopen a finished flow, and accepts a repeated request", () => {
    const done = after({ complete: ["fetch"], status: "done" });
    expect(applyChange(done, { status: "done" }, NOW)).toMatchObject({ unchanged: true });
    expect(applyChange(done, { complete: ["fetch"] }, NOW)).toMatchObject({ unchanged: true });
    for (const change of [
      { status: "in_progress" },
      { status: "failed" },
      { complete: ["send"] },
      { step: "x" },
    ] as const) {
      expect(applyChange(done, change, NOW)).toMatchObject({ refused: "done" });
    }
  });

  it("reopens a failed flow only on request", () => {
    const failed = after({ status: "failed" });
    expect(applyChange(failed, { complete: ["fetch"] }, NOW)).toMatchObject({ refused: "failed" });
    expect(after({ status: "in_progress" }, failed).status).toBe("in_progress");
  });

  it("always gives a valid document that keeps all completed steps", () => {
    const text = fc.string({ unit: "binary", maxLength: 12 });
    const change = fc.record(
      {
        complete: fc.array(text, { maxLength: 3 }),
        step: text,
        status: fc.constantFrom(...FLOW_STATUSES),
        notes: text,
      },
      { requiredKeys: [] },
    );
    fc.assert(
      fc.property(fc.array(change, { maxLength: 8 }), (changes) => {
        let current = flow;
        for (const each of changes) {
          const transition = applyChange(current, each, NOW);
          if (!("to" in transition)) continue;
          expect(transition.to.completedSteps).toEqual(expect.arrayContaining([...current.completedSteps]));
          expect(new Set(transition.to.completedSteps).size).toBe(transition.to.completedSteps.length);
          current = transition.to;
        }
        expect(checkDocument(JSON.parse(JSON.stringify(current)), "report").ok).toBe(true);
      }),
    );
  });
});

describe("a start", () => {
  const request = { workflow: "report", idempotency: "k1" };
  const done = { ...flow, status: "done" } as FlowDocument;
  const failed = { ...flow, status: "failed" } as FlowDocument;

  it("is allowed when no key is used", () => {
    expect(decideStart(request, undefined, [], false)).toEqual({ ok: true });
  });

  it("does not replace unfinished work unless forced", () => {
    expect(decideStart(request, flow, [usedKeyOf(flow)], false)).toMatchObject({ ok: false, why: "exists" });
    expect(decideStart(request, flow, [usedKeyOf(flow)], true)).toEqual({ ok: true });
  });

  it("never repeats finished work under its old key, with force or after a prune", () => {
    for (const force of [false, true]) {
      for (const pruned of [false, true]) {
        expect(decideStart(request, undefined, [usedKeyOf(done, pruned)], force)).toMatchObject({
          ok: false,
          why: "done",
        });
      }
    }
  });

  it("allows a new key after finished work, and the same key after failed work", () => {
    expect(decideStart({ ...request, idempotency: "k2" }, done, [usedKeyOf(done)], false)).toEqual({
      ok: true,
    });
    expect(decideStart(request, failed, [usedKeyOf(failed)], false)).toEqual({ ok: true });
  });

  it("allows each key for one flow only", () => {
    expect(decideStart({ ...request, workflow: "other" }, undefined, [usedKeyOf(flow)], false)).toMatchObject(
      {
        why: "key-in-use",
      },
    );
    expect(decideStart(request, undefined, [usedKeyOf(flow, true)], false)).toMatchObject({
      why: "key-expired",
    });
  });
});
