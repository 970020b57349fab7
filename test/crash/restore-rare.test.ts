// Crash points that an ordinary restore does not reach: while a file in no checkpoint is moved aside, and while a file is
// copied to another file system inside the cell.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { afterEach, beforeEach, expect, it } from "vitest";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { createWorld, differences, openMission, recordTree, type World } from "../snapshot/restore-world.ts";
import { runRestore } from "./kill.ts";

let world: World;
let mounted: string | undefined;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => {
  if (mounted !== undefined) execFileSync("umount", ["-l", mounted]);
  mounted = undefined;
  world[Symbol.dispose]();
});

/** Restores in a child process that is killed at `point`. */
const killAt = async (point: string, id: string) =>
  (await runRestore([world.directory, "restore", id], point)).signal;

it("killed while it moves new writes of an agent aside: they are kept, and the restore is completed", async () => {
  world.write("worktree/a", "then");
  world.write("worktree/b", "then");
  const { ref } = await world.checkpoint();
  const after = recordTree(world.cell);
  world.write("worktree/a", "now");
  world.write("worktree/b", "now");
  expect(await killAt("snapshot.restore.journalled", ref.id)).toBe("SIGKILL");
  for (const name of ["a", "b"]) {
    world.write(`worktree/${name}`, `${name}: in no checkpoint`);
    // Later than the safety checkpoint by any file system's clock.
    fs.utimesSync(world.path(`worktree/${name}`), 2e9, 2e9);
  }
  expect(await killAt("snapshot.restore.set-aside", ref.id)).toBe("SIGKILL");
  await takeCheckpoint(openMission(world.directory, "m"), { reason: "manual" });
  expect(differences(after, recordTree(world.cell))).toEqual([]);
  const [aside] = world.siblings();
  const kept = fs.globSync("**/worktree/?", { cwd: `${world.cell}/../${aside}` }).sort();
  const texts = kept.map((name) => fs.readFileSync(`${world.cell}/../${aside}/${name}`, "utf8"));
  expect(texts).toEqual(["a: in no checkpoint", "b: in no checkpoint"]);
});

it("killed while it copies to another file system in the cell: the restore is completed, without leftovers", async (context) => {
  const place = world.path("worktree/mounted");
  fs.mkdirSync(place);
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", "size=1m", "tmpfs", place], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    mounted = place;
  } catch (error) {
    context.skip(`a tmpfs cannot be mounted here: ${String((error as { stderr?: unknown }).stderr).trim()}`);
  }
  for (const name of ["a", "b", "c"]) world.write(`worktree/mounted/${name}`, `${name} of then`);
  const { ref } = await world.checkpoint();
  const after = recordTree(world.cell);
  for (const name of ["a", "b", "c"]) world.write(`worktree/mounted/${name}`, `${name} of now, longer`);
  expect(await killAt("snapshot.restore.copied-across#2", ref.id)).toBe("SIGKILL");
  await takeCheckpoint(openMission(world.directory, "m"), { reason: "manual" });
  expect(differences(after, recordTree(world.cell))).toEqual([]);
  expect(fs.readdirSync(place).sort()).toEqual(["a", "b", "c"]);
});
