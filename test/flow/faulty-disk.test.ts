// A disk that fails at each call in turn: the operation ends with a clear error, the flow is in its old or its new state,
// and the same call succeeds after the disk recovers.
import { describe, expect, it } from "vitest";
import {
  changeFlow,
  listFlows,
  pruneFlows,
  resumeFlow,
  startFlow,
  type Workspace,
} from "../../src/flow/index.ts";
import type { Owner } from "../../src/flow/locking/owner.ts";
import { systemDisk } from "../../src/platform/disk.ts";
import { LazarusError } from "../../src/platform/errors.ts";
import { createFaultyDisk, type FaultCode } from "../../src/testing/index.ts";
import { createScene, REPORT, type Scene } from "./scene.ts";

const CODES: readonly FaultCode[] = ["ENOSPC", "EIO", "EROFS"];

interface Operation {
  prepare(scene: Scene, me: Owner): Promise<unknown>;
  run(workspace: Workspace, me: Owner): Promise<unknown>;
  /** Whether the flow is in one of its two lawful states. */
  judge(scene: Scene): void;
}

const OPERATIONS: Record<string, Operation> = {
  start: {
    prepare: async () => undefined,
    run: (workspace, me) => startFlow(workspace, REPORT, { me }),
    judge: (scene) => expect(listFlows(scene.root).flows.length).toBeLessThanOrEqual(1),
  },
  update: {
    prepare: (scene, me) => startFlow(scene.workspace, REPORT, { me }),
    run: (workspace, me) => changeFlow(workspace, REPORT, { complete: ["fetch"] }, me),
    judge: (scene) => expect([[], ["fetch"]]).toContainEqual(scene.read("report").completedSteps),
  },
  resume: {
    prepare: (scene, me) => startFlow(scene.workspace, REPORT, { me }),
    run: (workspace, me) => resumeFlow(workspace, { workflow: "report", me }),
    judge: (scene) => expect(scene.read("report").status).toBe("in_progress"),
  },
  prune: {
    async prepare(scene, me) {
      await startFlow(scene.workspace, REPORT, { me });
      await changeFlow(scene.workspace, REPORT, { status: "done" }, me);
      await scene.machine.clock.advance(1);
    },
    run: (workspace, me) => pruneFlows(workspace, { me, keepDays: 0, dryRun: false }),
    async judge(scene) {
      if (listFlows(scene.root).flows.length === 0) {
        await expect(startFlow(scene.workspace, REPORT, { me: scene.owner() })).rejects.toThrow(
          "already done",
        );
      }
    },
  },
};

describe.for(Object.entries(OPERATIONS))("%s on a failing disk", ([, operation]) => {
  it.for(CODES)("%s at every call", async (code) => {
    for (let at = 1; ; at += 1) {
      using scene = createScene();
      const me = scene.owner();
      await operation.prepare(scene, me);
      const disk = createFaultyDisk(systemDisk, { code, at });
      const ended = await operation
        .run({ root: scene.root, machine: { ...scene.machine, disk } }, me)
        .catch((error) => error);
      if (disk.calls.length < at) break;
      if (ended instanceof Error) {
        expect(ended).toBeInstanceOf(LazarusError);
        expect(["machine", "conflict"]).toContain((ended as LazarusError).kind);
        expect((ended as LazarusError).hint).toBeTruthy();
      }
      expect(listFlows(scene.root).bad).toEqual([]);
      await operation.judge(scene);
      const again = await operation.run(scene.workspace, me).catch((error) => error);
      // A start whose file had arrived says so; everything else succeeds.
      if (again instanceof Error)
        expect((again as LazarusError).code).toMatch(/^FLOW_(EXISTS|ALREADY_DONE)$/);
    }
  });
});
