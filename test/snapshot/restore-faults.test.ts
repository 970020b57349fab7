// Restores with damaged vaults and failing disks. Before the journal is written the cell is never touched; afterwards the
// next command completes the restore.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, type TestContext } from "vitest";
import { systemDisk } from "../../src/platform/disk.ts";
import { LazarusError } from "../../src/platform/errors.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { decodeJournal, encodeJournal, type Journal } from "../../src/snapshot/restore/journal.ts";
import { createFaultyDisk, createRandom } from "../../src/testing/index.ts";
import { createWorld, differences, openMission, recordTree, type World } from "./restore-world.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => {
  for (const place of mounted.splice(0)) execFileSync("umount", ["-l", place]);
  world[Symbol.dispose]();
});

const mounted: string[] = [];

/** Mounts a small tmpfs at `place`, or skips the test with the reason. */
function mount(context: TestContext, place: string, size: string): void {
  try {
    execFileSync("mount", ["-t", "tmpfs", "-o", `size=${size}`, "tmpfs", place], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    mounted.push(place);
  } catch (error) {
    context.skip(`a tmpfs cannot be mounted here: ${String((error as { stderr?: unknown }).stderr).trim()}`);
  }
}

async function failure(work: Promise<unknown>): Promise<LazarusError> {
  try {
    await work;
  } catch (error) {
    if (error instanceof LazarusError) return error;
    throw error;
  }
  throw new Error("it did not fail");
}

const incompressible = (seed: number, size: number) => createRandom(seed).bytes(size);

describe("a damaged vault", () => {
  it("is detected before the cell is touched, and the error names the newest good checkpoint", async () => {
    world.write("worktree/a", incompressible(1, 30_000));
    const good = await world.checkpoint("good");
    world.write("worktree/a", incompressible(2, 30_000));
    const bad = await world.checkpoint("bad");
    world.write("worktree/a", incompressible(3, 30_000));
    await world.checkpoint("newest");
    const layer = bad.checkpoint.layers.at(-1)!;
    const blob = world.context.vault.blobPath(layer.digest);
    const fd = fs.openSync(blob, "r+");
    fs.writeSync(fd, "damage", 15_000);
    fs.closeSync(fd);
    world.write("worktree/a", "now");
    const before = recordTree(world.cell);
    const error = await failure(restoreCell(world.context, { checkpoint: bad.ref.id }));
    expect(error.exitCode).toBe(8);
    // The newest checkpoint also uses the damaged layer.
    expect(error.details["newest_good"]).toBe(good.ref.id);
    expect(error.message).toContain(`the newest checkpoint that is still good is ${good.ref.id}`);
    expect(error.hint).toBe(`lazarus restore m ${good.ref.id}`);
    expect(differences(before, recordTree(world.cell))).toEqual([]);
    expect(world.siblings()).toEqual([]);
    // Nothing was restored, so there is nothing to undo; and the good one can be restored.
    expect(world.context.vault.list().filter((ref) => ref.beforeRestoreOf !== null)).toEqual([]);
    await restoreCell(world.context, { checkpoint: good.ref.id });
    expect(fs.readFileSync(world.path("worktree/a"))).toEqual(Buffer.from(incompressible(1, 30_000)));
  });

  it("is refused when a layer is missing, truncated, or has a flipped bit", async () => {
    const random = createRandom(7);
    for (let i = 0; i < 6; i += 1) world.write(`worktree/${i}`, incompressible(i, 2_000));
    const { ref, checkpoint } = await world.checkpoint();
    for (let i = 0; i < 6; i += 1) world.write(`worktree/${i}`, "now");
    await world.checkpoint();
    const before = recordTree(world.cell);
    const blob = world.context.vault.blobPath(checkpoint.layers[0]!.digest);
    const whole = fs.readFileSync(blob);
    const damages: [string, () => void][] = [
      ["gone", () => fs.rmSync(blob)],
      ["cut", () => fs.truncateSync(blob, random.int(1, whole.length - 1))],
      ["empty", () => fs.truncateSync(blob, 0)],
    ];
    for (let i = 0; i < 25; i += 1) {
      const at = random.int(0, whole.length - 1);
      damages.push([
        `flipped at ${at}`,
        () => fs.writeFileSync(blob, Buffer.from(whole.map((byte, n) => (n === at ? byte ^ 4 : byte)))),
      ]);
    }
    for (const [what, damage] of damages) {
      damage();
      try {
        const { changes, flaws } = await restoreCell(world.context, { checkpoint: ref.id });
        // A flipped bit in a gzip header or in padding does no damage; then the restore must be exact.
        expect([what, changes.changed.length, flaws]).toEqual([what, 6, []]);
        for (let i = 0; i < 6; i += 1)
          expect(fs.readFileSync(world.path(`worktree/${i}`))).toEqual(Buffer.from(incompressible(i, 2_000)));
        fs.writeFileSync(blob, whole);
        await restoreCell(world.context, { checkpoint: world.context.vault.list().at(-1)!.id });
      } catch (error) {
        expect(error instanceof LazarusError && error.kind, `${what}: ${error}`).toBe("damaged");
      }
      expect(differences(before, recordTree(world.cell)), what).toEqual([]);
      fs.writeFileSync(blob, whole);
    }
  });
});

describe("a disk that fails", () => {
  it("full while staging: the cell is unchanged, nothing is left next to it, and the error has a hint", async (context) => {
    const home = join(world.directory, "small");
    fs.mkdirSync(home);
    mount(context, home, "8m");
    const small = createWorld(home);
    small.write("worktree/big", incompressible(1, 1_500_000));
    small.write("worktree/small", "then");
    const { ref } = await small.checkpoint();
    small.write("worktree/big", "tiny now");
    small.write("worktree/small", "now");
    await small.checkpoint();
    const filler = join(home, "filler");
    const free = fs.statfsSync(home);
    fs.writeFileSync(filler, Buffer.alloc(free.bavail * free.bsize - 600_000));
    const before = recordTree(small.cell);
    const error = await failure(restoreCell(small.context, { checkpoint: ref.id }));
    expect(error.code).toBe("DISK_FULL");
    expect(error.message).toContain("the cell was not touched");
    expect(error.hint).toContain("df -h");
    expect(differences(before, recordTree(small.cell))).toEqual([]);
    expect(small.siblings()).toEqual([]);
    fs.rmSync(filler);
    await restoreCell(small.context, { checkpoint: ref.id });
    expect(fs.readFileSync(small.path("worktree/small"), "utf8")).toBe("then");
  });

  it("full while restoring into a directory: the directory is emptied", async (context) => {
    world.write("worktree/big", incompressible(1, 3_000_000));
    await world.checkpoint();
    const directory = join(world.directory, "to");
    fs.mkdirSync(directory);
    mount(context, directory, "1m");
    const error = await failure(restoreTo(world.context, { directory }));
    expect(error.code).toBe("DISK_FULL");
    expect(fs.readdirSync(directory)).toEqual([]);
  });

  it("full before the safety checkpoint is saved: the cell is unchanged, and the hint names restore --to", async () => {
    world.write("worktree/a", "then");
    const { ref } = await world.checkpoint();
    world.write("worktree/a", "now, longer");
    const before = recordTree(world.cell);
    for (const code of ["ENOSPC", "EROFS"] as const) {
      const disk = createFaultyDisk(systemDisk, { code, at: ({ path }) => path.includes("blobs/sha256/") });
      const context = openMission(world.directory, "m", { machine: { ...systemMachine, disk } });
      const error = await failure(restoreCell(context, { checkpoint: ref.id }));
      expect(error.message).toContain("the cell was not touched");
      expect(error.hint).toContain(`lazarus restore m ${ref.id} --to DIR`);
      expect(differences(before, recordTree(world.cell))).toEqual([]);
      const directory = join(world.directory, `restored-${code}`);
      expect((await restoreTo(context, { checkpoint: ref.id, directory })).flaws).toEqual([]);
    }
  });

  it("failing at any write of the journal: the cell is unchanged, or the next command completes the restore", async () => {
    world.write("worktree/a", "then");
    const { ref } = await world.checkpoint();
    const after = recordTree(world.cell);
    world.write("worktree/a", "now, longer");
    const before = recordTree(world.cell);
    for (const code of ["ENOSPC", "EIO", "EROFS"] as const) {
      for (const method of ["create", "write", "fsync", "rename", "fsyncDirectory"] as const) {
        const journal = (path: string) => path.includes("restore-journal");
        const disk = createFaultyDisk(systemDisk, {
          code,
          at: (call) =>
            call.method === method &&
            (journal(call.path) ||
              (method === "fsyncDirectory" && fs.existsSync(world.context.vault.journalFile))),
        });
        const context = openMission(world.directory, "m", { machine: { ...systemMachine, disk } });
        const error = await failure(restoreCell(context, { checkpoint: ref.id }));
        expect(error.kind, `${code} at ${method}`).toBe("machine");
        await world.checkpoint();
        const seen = recordTree(world.cell);
        const old = differences(before, seen);
        if (old.length > 0) expect(differences(after, seen)).toEqual([]);
        expect(world.siblings()).toEqual([]);
        world.write("worktree/a", "now, longer");
        fs.utimesSync(world.path("worktree/a"), 5, 5);
        const again = recordTree(world.cell);
        before.clear();
        for (const [name, facts] of again) before.set(name, facts);
      }
    }
  });
});

describe("another file system inside the cell", () => {
  it("receives copies, with holes and metadata", async (context) => {
    const place = world.path("worktree/mounted");
    fs.mkdirSync(place);
    mount(context, place, "4m");
    world.write("worktree/mounted/file", "then");
    fs.chmodSync(world.path("worktree/mounted/file"), 0o640);
    world.write("worktree/mounted/sub/gone", "then");
    fs.symlinkSync("file", world.path("worktree/mounted/link"));
    fs.linkSync(world.path("worktree/mounted/file"), world.path("worktree/mounted/hard"));
    const sparse = world.write("worktree/mounted/sparse", "");
    fs.truncateSync(sparse, 1 << 20);
    const before = recordTree(world.cell);
    const { ref } = await world.checkpoint();
    world.write("worktree/mounted/file", "now, longer");
    fs.rmSync(world.path("worktree/mounted/sub"), { recursive: true });
    fs.rmSync(world.path("worktree/mounted/link"));
    fs.rmSync(sparse);
    world.write("worktree/mounted/later", "now");
    const { flaws } = await restoreCell(world.context, { checkpoint: ref.id });
    expect(flaws).toEqual([]);
    expect(differences(before, recordTree(world.cell))).toEqual([]);
    expect(fs.readdirSync(place).filter((name) => name.startsWith("."))).toEqual([]);
  });
});

describe("the journal", () => {
  const journal: Journal = {
    mission: "m",
    cellRoot: "/cell",
    target: "t",
    safety: "s",
    safetyMs: 1,
    flaws: [],
    plan: {
      clear: [],
      directories: [],
      place: [],
      adjust: [],
      remove: [
        {
          path: "odd \udcff\n",
          was: { type: "file", size: 1, mtimeSec: -1, mtimeNs: 999_999_999, mode: 0o644 },
        },
      ],
      sidecars: [],
      changes: { added: [], changed: [], metadata: [], removed: ["odd \udcff\n"], kept: [] },
    },
  };

  it("round-trips", () => {
    expect(decodeJournal(encodeJournal(journal))).toEqual({ state: "found", journal });
  });

  it("is refused when any byte of it changed or is missing", () => {
    const text = encodeJournal(journal);
    for (let at = 0; at < text.length; at += 1) {
      const flipped = text.slice(0, at) + String.fromCharCode(text.charCodeAt(at) ^ 1) + text.slice(at + 1);
      const reading = decodeJournal(flipped);
      if (reading.state === "found") expect(reading.journal.plan, `flipped at ${at}`).toEqual(journal.plan);
      expect(decodeJournal(text.slice(0, at)).state, `cut at ${at}`).toBe("damaged");
    }
  });
});
