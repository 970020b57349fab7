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
import { createFixture, type Fixture, REPORT } from "./fixture.ts";

const CODES: readonly FaultCode[] = ["ENOSPC", "EIO", "EROFS"];

interface Operation {
  prepare(fixture: Fixture, me: Owner): Promise<unknown>;
  run(workspace: Workspace, me: Owner): Promise<unknown>;
  /** Fails unless the flow is in its old or its new state. */
  check(fixture: Fixture): void;
}

const OPERATIONS: Record<string, Operation> = {
  start: {
    prepare: async () => undefined,
    run: (workspace, me) => startFlow(workspace, REPORT, { me }),
    check: (fixture) => expect(listFlows(fixture.root).flows.length).toBeLessThanOrEqual(1),
  },
  update: {
    prepare: (fixture, me) => startFlow(fixture.workspace, REPORT, { me }),
    run: (workspace, me) => changeFlow(workspace, REPORT, { complete: ["fetch"] }, me),
    check: (fixture) => expect([[], ["fetch"]]).toContainEqual(fixture.read("report").completedSteps),
  },
  resume: {
    prepare: (fixture, me) => startFlow(fixture.workspace, REPORT, { me }),
    run: (workspace, me) => resumeFlow(workspace, { workflow: "report", me }),
    check: (fixture) => expect(fixture.read("report").status).toBe("in_progress"),
  },
  prune: {
    async prepare(fixture, me) {
      await startFlow(fixture.workspace, REPORT, { me });
      await changeFlow(fixture.workspace, REPORT, { status: "done" }, me);
      await fixture.machine.clock.advance(1);
    },
    run: (workspace, me) => pruneFlows(workspace, { me, keepDays: 0, dryRun: false }),
    async check(fixture) {
      if (listFlows(fixture.root).flows.length === 0) {
        await expect(startFlow(fixture.workspace, REPORT, { me: fixture.owner() })).rejects.toThrow(
          "already done",
        );
      }
    },
  },
};

describe.for(Object.entries(OPERATIONS))("%s on a failing disk", ([, operation]) => {
  it.for(CODES)("%s at every call", async (code) => {
    for (let at = 1; ; at += 1) {
      using fixture = createFixture();
      const me = fixture.owner();
      await operation.prepare(fixture, me);
      const disk = createFaultyDisk(systemDisk, { code, at });
      const ended = await operation
        .run({ root: fixture.root, machine: { ...fixture.machine, disk } }, me)
        .catch((error) => error);
      if (disk.calls.length < at) break;
      if (ended instanceof Error) {
        expect(ended).toBeInstanceOf(LazarusError);
        expect(["machine", "conflict"]).toContain((ended as LazarusError).kind);
        expect((ended as LazarusError).hint).toBeTruthy();
      }
      expect(listFlows(fixture.root).bad).toEqual([]);
      await operation.check(fixture);
      const again = await operation.run(fixture.workspace, me).catch((error) => error);
      // A start that had already written its file is refused; everything else succeeds.
      if (again instanceof Error)
        expect((again as LazarusError).code).toMatch(/^FLOW_(EXISTS|ALREADY_DONE)$/);
    }
  });
});
