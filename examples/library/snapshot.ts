// Checkpoints: takes one, changes a file, restores it, undoes the restore.
//
//   node examples/library/snapshot.ts ./home
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { initCell } from "lazarus";
import { openMission, restoreCell, takeCheckpoint, undoRestore, verifyVault } from "lazarus/snapshot";

const mission = openMission("fix-login", { home: process.argv[2] ?? "home" });
initCell(mission.config, mission.mission);
const file = join(mission.cellRoot, "worktree", "notes.txt");

writeFileSync(file, "before");
const { ref } = await takeCheckpoint(mission, { reason: "manual", message: "before the upgrade" });
writeFileSync(file, "after the upgrade");
await restoreCell(mission, { checkpoint: ref.id });
const restored = readFileSync(file, "utf8");
await undoRestore(mission);
const undone = readFileSync(file, "utf8");
const { findings } = await verifyVault(mission.vault, { deep: true });
console.log(
  `ok: ${restored}, then ${undone}; ${mission.vault.list().length} checkpoints, ${findings.length} findings`,
);
