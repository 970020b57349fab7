// A flow in a cell: its position is part of the cell's checkpoints, and a restore prints the step that it returns to and
// what was done since then and is not undone.
import { describe, expect, it } from "vitest";
import { createWorld } from "../cli/hermetic.ts";

describe("a flow in a cell", () => {
  it("is restored with the cell, and the restore prints its step", () => {
    using world = createWorld();
    const env = { LAZARUS_CELL: "m1" };
    const flow = (line: string) => {
      const ended = world.run(`flow ${line}`.split(" "), { env });
      expect(ended.exit, ended.stderr).toBe(0);
      return ended;
    };
    const lazarus = (line: string) => {
      const ended = world.run(line.split(" "));
      expect(ended.exit, ended.stderr).toBe(0);
      return ended;
    };
    lazarus("init m1");
    flow("start -w deploy --agent anna --idempotency d1 --step build --remaining build test announce");
    flow("update -w deploy --complete build");
    const checkpoint = lazarus("checkpoint m1").stdout.trim();
    expect(JSON.parse(lazarus("show m1 --json").stdout).flows).toEqual([
      expect.objectContaining({
        file: "worktree/memory/checkpoints/deploy.json",
        workflowId: "deploy",
        agentId: "anna",
        status: "in_progress",
        currentStep: "test",
        completedSteps: 1,
        hashOk: true,
      }),
    ]);
    flow("update -w deploy --complete test");
    flow("once -w deploy --key mail -- true");
    const { stderr } = lazarus(`restore m1 ${checkpoint}`);
    expect(stderr).toContain(
      'flow deploy goes back from step "announce" (in_progress, 2 done) to step "test" (in_progress, 1 done); ' +
        "1 completed step will count as not done\n",
    );
    expect(stderr).toMatch(/done since that checkpoint, .*\n {2}flow deploy, "mail" \(true\): done at 20/);
    expect(JSON.parse(flow("resume").stdout)).toMatchObject({
      completedSteps: ["build"],
      currentStep: "test",
    });
    expect(lazarus("undo m1").stderr).toContain('flow deploy goes forward from step "test"');
    expect(flow("once -w deploy --key mail -- false").stderr).toContain("was already done");
  });
});
