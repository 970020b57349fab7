// Deletions killed with SIGKILL at every step: a cell or vault that is left is complete, the directory in place is untouched,
// and the same deletion again leaves nothing of the mission.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { expect, it } from "vitest";
import { agentDirectory } from "../../src/cell/fence.ts";
import { deleteMission, planDeletion } from "../../src/snapshot/operations/delete-mission.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { createOutsideWorld, openMission, recordTree, type World } from "../snapshot/restore-world.ts";
import { runRestore } from "./kill.ts";

const MOMENTS = ["snapshot.delete.removed", "snapshot.delete.set-aside"];

/** Paths below the home that name the mission. */
function traces(home: string): string[] {
  return fs
    .readdirSync(home, { recursive: true, encoding: "utf8" })
    .filter((path) => path.split("/").some((name) => /^m(\.jsonl?)?$|-m$/.test(name)));
}

/** A mission with a directory in place, a checkpoint, an effect, and an agent that ran before. */
async function createVictim(): Promise<World> {
  const worktree = fs.mkdtempSync(join(tmpdir(), "lazarus-delete-"));
  fs.writeFileSync(join(worktree, "file"), "x");
  const world = await createOutsideWorld(undefined, worktree);
  await world.checkpoint();
  const { effects, config } = world.context;
  fs.mkdirSync(dirname(effects.file), { recursive: true });
  fs.writeFileSync(effects.file, "{}\n");
  fs.writeFileSync(join(agentDirectory(config, "m"), "record.json"), "{}\n");
  // What a restore moved aside, because it is in no checkpoint.
  fs.mkdirSync(join(config.missions_root, ".lazarus-aside-m", "id"), { recursive: true });
  return world;
}

for (const moment of MOMENTS) {
  it(`killed at ${moment}: the same call again finishes it`, async () => {
    for (let kills = 0; ; kills += 1) {
      using world = await createVictim();
      const { directory: home, cell, context } = world;
      const worktree = context.worktree!.path;
      const before = { worktree: recordTree(worktree), cell: recordTree(cell) };
      const { signal, stderr } = await runRestore([home, "delete"], `${moment}#${kills + 1}`);
      expect(recordTree(worktree)).toEqual(before.worktree);
      if (signal === null) {
        expect(stderr).toBe("");
        expect(kills).toBeGreaterThan(2);
        expect(traces(home)).toEqual([]);
        return;
      }
      const left = openMission(home, "m");
      if (fs.existsSync(cell)) expect(recordTree(cell)).toEqual(before.cell);
      if (fs.existsSync(left.vault.root))
        expect((await verifyVault(left.vault, { deep: true })).findings).toEqual([]);
      await deleteMission(left);
      expect(traces(home)).toEqual([]);
      expect(() => planDeletion(openMission(home, "m"))).toThrow("there is no mission m");
    }
  });
}
