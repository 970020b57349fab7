import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { formatExact } from "../document/python-json.ts";
import { newDocument } from "../document/transition.ts";
import { describeFlowMove, type FlowPosition, readFlowPositions } from "./positions.ts";

let root: string;
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "lazarus-positions-"));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const write = (path: string, text: string) => {
  mkdirSync(dirname(join(root, path)), { recursive: true });
  writeFileSync(join(root, path), text);
};
const flow = (workflow: string) =>
  formatExact(newDocument({ workflow, agent: "anna", idempotency: workflow, step: "fetch" }, 0));

describe("positions of a cell's flows", () => {
  it("are found in the worktree, the cell and state, and per agent", () => {
    const places = [
      "worktree/memory/checkpoints/a.json",
      "worktree/agents/ben/memory/checkpoints/b.json",
      "memory/checkpoints/c.json",
      "state/memory/checkpoints/d.json",
    ];
    for (const [i, path] of places.entries()) write(path, flow("abcd"[i]!));
    write("worktree/memory/checkpoints/bad.json", "junk");
    write("worktree/memory/checkpoints/edited.json", flow("edited").replace("fetch", "catch"));
    const positions = readFlowPositions(root);
    expect(positions.map(({ file, status, hashOk }) => [file, status, hashOk])).toEqual([
      [places[0], "in_progress", true],
      ["worktree/memory/checkpoints/bad.json", "invalid", null],
      ["worktree/memory/checkpoints/edited.json", "invalid", false],
      [places[1], "in_progress", true],
      [places[2], "in_progress", true],
      [places[3], "in_progress", true],
    ]);
    expect(positions[0]).toEqual({
      file: places[0],
      workflowId: "a",
      agentId: "anna",
      status: "in_progress",
      currentStep: "fetch",
      completedSteps: 0,
      updatedAt: "1970-01-01T00:00:00.000+00:00",
      hashOk: true,
    });
  });

  it("are empty where there are no flows, and reading never throws", () => {
    expect(readFlowPositions(join(root, "nowhere"))).toEqual([]);
    write("worktree", "a file");
    write("state/memory/checkpoints", "a file");
    mkdirSync(join(root, "memory"));
    symlinkSync("/etc", join(root, "memory", "checkpoints"));
    expect(readFlowPositions(root)).toEqual([]);
  });

  it("are bounded in number and length", () => {
    for (let i = 0; i < 1100; i += 1) write(`memory/checkpoints/f${i}.json`, "{}");
    expect(readFlowPositions(root)).toHaveLength(1000);
  });
});

describe("what a restore does to the flows", () => {
  const at = (workflowId: string, currentStep: string, completedSteps: number, status = "in_progress") =>
    ({
      file: `memory/checkpoints/${workflowId}.json`,
      workflowId,
      currentStep,
      completedSteps,
      status,
    }) as FlowPosition;

  it("is described in one sentence per flow", () => {
    const before = [
      at("deploy", "announce", 3),
      at("new", "x", 0),
      at("same", "s", 1),
      at("broken", "", 0, "invalid"),
    ];
    const after = [at("deploy", "build", 1), at("same", "s", 1), at("lost", "l", 2), at("broken", "b", 1)];
    expect(describeFlowMove(before, after)).toEqual([
      'flow broken goes forward from a damaged file to step "b" (in_progress, 1 done)',
      'flow deploy goes back from step "announce" (in_progress, 3 done) to step "build" (in_progress, 1 done); 2 completed steps will count as not done',
      'flow lost is restored at step "l" (in_progress, 2 done)',
      "flow new is removed: it is not in the checkpoint",
    ]);
    expect(describeFlowMove(after, after)).toEqual([]);
  });
});
