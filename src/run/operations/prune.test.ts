// What retention removes, as decisions about plain data.
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { JOURNAL_FORMAT, type Lineage } from "../journal/journal.ts";
import { choosePrunable, planPrune } from "./prune.ts";

const run = (id: string, change: Partial<Lineage> = {}): Lineage => ({
  ...{ id, status: "completed", epoch: 1, step: 3, updatedAtMs: 0, forkOf: null, forkStep: null },
  ...{ format: JOURNAL_FORMAT, agentId: "a", parentRunId: null, unknownEffects: 0 },
  ...change,
});

describe("retention", () => {
  test("removes what is old, ended and known, except for the newest", () => {
    const lineage = [
      run("old", { updatedAtMs: 10 }),
      run("older", { updatedAtMs: 5 }),
      run("young", { updatedAtMs: 95 }),
      run("open", { status: "waiting" }),
      run("parked", { status: "needs-human" }),
      run("unknown", { status: "cancelled", unknownEffects: 1 }),
      run("foreign", { format: JOURNAL_FORMAT + 1 }),
      run("stub", { status: "stub" }),
    ];
    expect(choosePrunable(lineage, { olderThanMs: 50 }, 100)).toEqual(["old", "older"]);
    expect(choosePrunable(lineage, { olderThanMs: 50, keepLast: 2 }, 100)).toEqual(["older"]);
    expect(choosePrunable(lineage, { olderThanMs: 0, keepLast: 3 }, 100)).toEqual([]);
  });
  test("removes only runs that ended as given", () => {
    const lineage = [run("good"), run("bad", { status: "failed" }), run("late", { status: "timeout" })];
    expect(choosePrunable(lineage, { olderThanMs: 0, statuses: ["failed", "timeout"] }, 1)).toEqual([
      "bad",
      "late",
    ]);
  });
  test("keeps the children of an open run", () => {
    const child = run("child", { parentRunId: "parent" });
    expect(choosePrunable([run("parent", { status: "running" }), child], { olderThanMs: 0 }, 1)).toEqual([]);
    expect(choosePrunable([run("parent"), child], { olderThanMs: 0 }, 1)).toEqual(["parent", "child"]);
  });
  test("a run with a kept fork becomes a stub with the shared steps, even across several generations", () => {
    const lineage = [
      run("root"),
      run("middle", { forkOf: "root", forkStep: 2 }),
      run("leaf", { forkOf: "middle", forkStep: 1, status: "running" }),
    ];
    expect(planPrune(lineage, new Set(["root", "middle"]))).toEqual({
      remove: [],
      stub: [
        { runId: "root", epoch: 1, keepStep: 1 },
        { runId: "middle", epoch: 1, keepStep: 1 },
      ],
      prove: [{ runId: "leaf", step: 3 }],
    });
  });
  test("a fork at step 0 still needs the input", () => {
    const lineage = [run("root"), run("again", { forkOf: "root", forkStep: 0 })];
    expect(planPrune(lineage, new Set(["root"])).stub).toEqual([{ runId: "root", epoch: 1, keepStep: 0 }]);
  });
  test("a stub is removed with its last fork", () => {
    const lineage = [run("root", { status: "stub" }), run("leaf", { forkOf: "root", forkStep: 1 })];
    expect(planPrune(lineage, new Set(["leaf"])).remove.map(({ runId }) => runId)).toEqual(["root", "leaf"]);
  });
  test("every kept run keeps every step it shares, for any tree of forks", () => {
    const families = fc.array(
      fc.record({ parent: fc.nat(20), forkStep: fc.nat(5), chosen: fc.boolean(), isFork: fc.boolean() }),
      { minLength: 1, maxLength: 12 },
    );
    fc.assert(
      fc.property(families, (specs) => {
        const lineage = specs.map(({ parent, forkStep, isFork }, i) =>
          isFork && i > 0
            ? run(`r${i}`, { forkOf: `r${parent % i}`, forkStep, step: 9 })
            : run(`r${i}`, { step: 9 }),
        );
        const chosen = new Set(lineage.filter((_, i) => specs[i]!.chosen).map(({ id }) => id));
        const { remove, stub } = planPrune(lineage, chosen);
        const left = new Map(lineage.map(({ id }) => [id, Number.POSITIVE_INFINITY]));
        for (const { runId } of remove) left.delete(runId);
        for (const { runId, keepStep } of stub) left.set(runId, keepStep);
        for (const { id } of lineage.filter((row) => !chosen.has(row.id))) {
          let row = lineage.find((each) => each.id === id)!;
          for (let limit = 9; row.forkOf !== null; ) {
            limit = Math.min(limit, row.forkStep!);
            expect(left.get(row.forkOf)).toBeGreaterThanOrEqual(limit);
            row = lineage.find((each) => each.id === row.forkOf)!;
          }
        }
      }),
    );
  });
});
