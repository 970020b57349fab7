// Checkpoints taken by the pit are recorded like those of the command line: the index follows the vault, and a restore
// that had been interrupted leaves an event.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { resolveConfig } from "../../src/cell/config.ts";
import { initCell } from "../../src/cell/init.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { checkpointMission } from "../../src/pit/actions.ts";
import { openPitContext, type PitContext } from "../../src/pit/context.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { listCheckpoints } from "../../src/registry/checkpoints.ts";
import { writeJournal } from "../../src/snapshot/restore/journal.ts";
import { planRestore } from "../../src/snapshot/restore/plan.ts";

const mission = parseMissionId("m1");
const retention = { keep_last: 1, keep_hourly: 0, keep_daily: 0, keep_weekly: 0, keep_within_seconds: 0 };

let directory: string;
let context: PitContext;
let log: string[];
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-pit-"));
  log = [];
  const environment = { LAZARUS_HOME: directory, HOME: directory, PATH: process.env.PATH };
  const effective = resolveConfig({ env: environment, cwd: directory, isRoot: false }, undefined, {
    retention,
  });
  initCell(systemMachine, effective.config, mission);
  context = openPitContext({
    machine: systemMachine,
    effective,
    version: "test",
    environment,
    cwd: directory,
    log: (line) => log.push(line),
    warn: (line) => log.push(line),
  });
});
afterEach(() => {
  context[Symbol.dispose]();
  rmSync(directory, { recursive: true, force: true });
});

const checkpoint = (text: string) => {
  const { cellRoot } = context.openMission(mission);
  writeFileSync(join(cellRoot, "worktree", "notes.txt"), text);
  return checkpointMission(context, mission);
};

it("removes pruned checkpoints from the index", async () => {
  for (const text of ["one", "two", "three"]) await checkpoint(text);
  const kept = context
    .openMission(mission)
    .vault.list()
    .map(({ id }) => id);
  expect(kept).toHaveLength(1);
  const indexed = listCheckpoints(context.registry()!, { mission }).map(({ id }) => id);
  expect(indexed).toEqual(kept);
});

it("records an interrupted restore that a checkpoint finished first, and says so", async () => {
  const safety = await checkpoint("one");
  const { vault, cellRoot } = context.openMission(mission);
  const flaws = [{ path: "worktree/x", kind: "degraded", reason: "its owner was not set" }] as const;
  const plan = planRestore(new Map(), new Map(), { owners: false });
  const { id, createdAtMs } = safety.ref;
  writeJournal(systemMachine, vault.journalFile, {
    ...{ mission, cellRoot, target: "20261115-235301-x7k2p9", safety: id, safetyMs: createdAtMs },
    ...{ flaws, plan },
  });
  await checkpoint("two");
  const events = context.registry()!.events({ mission });
  expect(events.find(({ kind }) => kind === "restore")?.data).toMatchObject({
    checkpoint: "20261115-235301-x7k2p9",
    safety: id,
    flaws: 1,
    interrupted: true,
  });
  expect(log.join("\n")).toContain("finished an interrupted restore of 20261115-235301-x7k2p9");
});
