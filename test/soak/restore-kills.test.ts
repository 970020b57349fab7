// Restores killed at random moments, hundreds of times in a row on the same mission: after each, the next command finds
// the cell completely in one of the two states. LAZARUS_SEED and LAZARUS_KILLS replay and lengthen it.
import { spawn } from "node:child_process";
import fs from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { setPin } from "../../src/snapshot/operations/pin.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { createRandom } from "../../src/testing/index.ts";
import { createWorld, differences, openMission, recordTree } from "../snapshot/restore-world.ts";

const seed = Number(process.env.LAZARUS_SEED ?? 1);
const kills = Number(process.env.LAZARUS_KILLS ?? 500);
const victim = fileURLToPath(new URL("../crash/restore-victim.ts", import.meta.url));

/** How long the operation took, or undefined if it was killed. */
function runAndKill(args: readonly string[], afterMs: number): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const startMs = performance.now();
    const child = spawn(process.execPath, [victim, ...args], { stdio: ["ignore", "pipe", "inherit"] });
    const timer = setTimeout(() => child.kill("SIGKILL"), afterMs);
    child.on("error", reject);
    child.on("close", (_, signal) => {
      clearTimeout(timer);
      resolve(signal === "SIGKILL" ? undefined : performance.now() - startMs);
    });
  });
}

it(`${kills} random kills of restores and undos (seed ${seed})`, async () => {
  const random = createRandom(seed);
  using world = createWorld();
  const states: { id: string; tree: Map<string, string> }[] = [];
  for (const name of ["one", "two"]) {
    fs.rmSync(world.path("worktree"), { recursive: true });
    fs.mkdirSync(world.path("worktree"));
    for (let i = 0; i < 300; i += 1) {
      if (random.chance(0.7)) world.write(`worktree/${i % 7}/${i}`, `${name} ${random.int(0, 3)}`);
    }
    fs.symlinkSync(name, world.path("worktree/link"));
    const { ref } = await world.checkpoint(name);
    await setPin(world.context, ref.id, true);
    states.push({ id: ref.id, tree: recordTree(world.cell) });
  }
  let killed = 0;
  let round = 0;
  // How long a restore takes on this machine, so that kills are spread over all of it.
  let durationMs = (await runAndKill([world.directory, "restore", states[0]!.id], 60_000)) ?? 1000;
  for (; killed < kills; round += 1) {
    const target = states[round % 2]!;
    const action = random.chance(0.1) ? ["undo"] : ["restore", target.id];
    const tookMs = await runAndKill([world.directory, ...action], random.int(0, Math.ceil(durationMs * 1.1)));
    if (tookMs === undefined) killed += 1;
    else durationMs = (durationMs + tookMs) / 2;
    const { flaws } = await takeCheckpoint(openMission(world.directory, "m"), { reason: "manual" });
    expect(flaws, `seed ${seed}, round ${round}`).toEqual([]);
    const seen = recordTree(world.cell);
    const distances = states.map(({ tree }) => differences(tree, seen));
    expect(
      Math.min(...distances.map(({ length }) => length)),
      `seed ${seed}, round ${round}: ${distances[0]}`,
    ).toBe(0);
    expect(world.siblings()).toEqual([]);
    if (round % 20 === 0) {
      const { findings } = await verifyVault(world.context.vault, { deep: true });
      expect(findings, `seed ${seed}, round ${round}`).toEqual([]);
    }
  }
  process.stderr.write(`${killed} of ${round} restores and undos were killed\n`);
});
