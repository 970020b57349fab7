// The checkpoint after a life is taken before the next life starts, even if the vault was damaged in between.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

let world: PitWorld;
beforeEach(() => {
  world = createPitWorld();
});
afterEach(() => world.close());

const index = () => join(world.home, "vault", "m1", "index.json");

/** An agent that dies while its vault is damaged; returns the repair. */
async function crash(revive: string): Promise<() => void> {
  await world.call([
    "run",
    "m1",
    "-d",
    "--revive",
    revive,
    "--",
    "sh",
    "-c",
    "echo work >> done; exec sleep 777",
  ]);
  await world.until("its work", () => readFileSync(join(world.missions, "m1", "worktree", "done"), "utf8"));
  const good = readFileSync(index());
  writeFileSync(index(), "damaged");
  process.kill(world.life("m1").agent.pid, "SIGKILL");
  return () => writeFileSync(index(), good);
}

it("a pit does not revive before the crash checkpoint is taken, says so, and takes it after the repair", async () => {
  const repair = await crash("yes");
  await world.openPit();
  await world.until("the failure", () => world.record("m1").scene?.error);
  expect(world.record("m1")).toMatchObject({
    scene: { checkpoint: null },
    decision: null,
    life: { epoch: 1 },
  });
  const { stdout } = await world.call(["why", "m1"]);
  expect(stdout).toContain("checkpoint failed:");
  expect(stdout).toContain("lazarus revive m1 --without-checkpoint");
  // The alert follows the record.
  await world.until("the alert", () => world.run(["events", "m1"]).stdout.includes("trouble"));
  repair();
  // Wakes the pit, which would otherwise retry within 30 seconds.
  writeFileSync(join(world.home, "run", "bell", "m1"), "");
  await world.until("the revival", () => world.state("m1") === "running" && world.life("m1").epoch === 2);
  const { checkpoint } = world.record("m1").scene;
  expect(world.checkpoints("m1")).toContainEqual({ checkpoint_id: checkpoint, reason: "crash" });
});

it("a revival by the user also takes it first, and skips it only with --without-checkpoint", async () => {
  const repair = await crash("no");
  await world.until("the end", () => world.state("m1") === "ending");
  const refused = await world.call(["revive", "m1"]);
  expect(refused.exit).toBe(8);
  expect(refused.stderr).toContain("--without-checkpoint");
  expect(refused.stderr).not.toContain("caused by");
  expect(world.record("m1").life.epoch).toBe(1);
  expect((await world.call(["revive", "m1", "--without-checkpoint"])).exit).toBe(0);
  expect(world.record("m1").scene).toMatchObject({ checkpoint: null, waived: "by-user" });
  await world.until("the second life", () => world.life("m1").epoch === 2);
  process.kill(world.life("m1").agent.pid, "SIGKILL");
  await world.until("its end", () => world.state("m1") === "ending");
  repair();
  expect((await world.call(["revive", "m1"])).exit).toBe(0);
  expect(world.checkpoints("m1").at(-1)).toEqual({
    checkpoint_id: world.record("m1").scene.checkpoint,
    reason: "crash",
  });
});
