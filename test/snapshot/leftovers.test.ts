// What an operation that failed or was ended leaves behind: nothing, or something that the next command removes.
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemDisk } from "../../src/platform/disk.ts";
import { acquireLock } from "../../src/platform/lock.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { forkMission } from "../../src/snapshot/operations/fork.ts";
import { importCell } from "../../src/snapshot/operations/import.ts";
import { createFaultyDisk } from "../../src/testing/index.ts";
import { createWorld as createCliWorld } from "../cli/hermetic.ts";
import { createWorld, openMission, type World } from "./restore-world.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

describe("the scratch directory of a drill", () => {
  it("is removed when the terminal hangs up", () => {
    using cli = createCliWorld();
    cli.run(["init", "m"]);
    cli.run(["checkpoint", "m"]);
    const hangUp = `globalThis[Symbol.for("lazarus.crash-point")] = (name) => {
      if (name === "snapshot.drill.restored") process.kill(process.pid, "SIGHUP");
    };`;
    const hook = `data:text/javascript,${encodeURIComponent(hangUp)}`;
    const { exit } = cli.run(["drill", "m"], { nodeOptions: ["--import", hook] });
    expect(exit, "it exited normally, not by the signal").not.toBeNull();
    expect(fs.readdirSync(cli.missions)).toEqual(["m"]);
  });

  it("that a killed drill left is removed by the next command, but not that of a running drill", async () => {
    await world.checkpoint();
    const { vault, cellRoot } = world.context;
    const scratch = join(cellRoot, "..", ".lazarus-drill-m");
    fs.mkdirSync(join(scratch, "worktree"), { recursive: true });
    {
      using _running = await acquireLock(systemMachine, join(vault.root, "lazarus/drill.lock"), {
        purpose: "drill of m",
      });
      await world.checkpoint();
      expect(world.siblings()).toContain(".lazarus-drill-m");
    }
    await world.checkpoint();
    expect(world.siblings()).not.toContain(".lazarus-drill-m");
  });
});

describe("a new mission that could not be made", () => {
  const other = () => openMission(world.directory, "other");

  it("by an import leaves no vault", async () => {
    const archive = join(world.directory, "archive.tar");
    fs.writeFileSync(archive, "This is not a tar archive. ".repeat(100));
    await expect(importCell(other(), { source: archive, owners: false })).rejects.toMatchObject({
      code: "LAYER_DAMAGED",
    });
    expect(fs.existsSync(other().vault.root)).toBe(false);
  });

  it("by a fork leaves no vault, and the same fork succeeds afterwards", async () => {
    world.write("worktree/a", "1");
    const { checkpoint } = await world.checkpoint();
    const blob = world.context.vault.blobPath(checkpoint.layers[0]!.digest);
    const whole = fs.readFileSync(blob);
    fs.writeFileSync(blob, "damaged");
    await expect(forkMission(world.context, other(), {})).rejects.toMatchObject({ kind: "damaged" });
    expect(fs.existsSync(other().vault.root)).toBe(false);
    fs.mkdirSync(join(blob, ".."), { recursive: true });
    fs.writeFileSync(blob, whole);
    await forkMission(world.context, other(), {});
    expect(other().vault.list().length).toBe(1);
  });

  it("by a fork leaves no effect history, which a later mission of that name would find", async () => {
    world.write("worktree/a", "1");
    world.context.effects.append({ source: "mission", state: "forked", id: "m-1", attempt: 0, where: "x" });
    await world.checkpoint();
    let wasCopied = false;
    const disk = createFaultyDisk(systemDisk, {
      code: "ENOSPC",
      at({ path }) {
        wasCopied ||= fs.existsSync(other().effects.file);
        return wasCopied && path.includes("/vault/other/");
      },
    });
    const failing = openMission(world.directory, "other", { machine: { ...systemMachine, disk } });
    await expect(forkMission(world.context, failing, {})).rejects.toMatchObject({ code: "DISK_FULL" });
    expect(wasCopied).toBe(true);
    expect(fs.existsSync(other().effects.file)).toBe(false);
  });

  it("keeps a vault that has checkpoints", async () => {
    world.write("worktree/a", "1");
    await world.checkpoint();
    await forkMission(world.context, other(), {});
    fs.rmSync(other().cellRoot, { recursive: true });
    const disk = createFaultyDisk(systemDisk, {
      code: "ENOSPC",
      at: ({ path }) => path.includes("fork-other"),
    });
    const failing = openMission(world.directory, "other", { machine: { ...systemMachine, disk } });
    await expect(forkMission(world.context, failing, {})).rejects.toMatchObject({ code: "DISK_FULL" });
    expect(other().vault.list().length).toBe(1);
  });
});
