// INV-3 for a worktree outside the cell, on the same and on another file system: SIGKILL at every crash point of a restore.
// The next command finds the old or the new state of both places, and no trace of the restore in or next to either.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { protectDirectory } from "../../src/snapshot/operations/protect.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { undoRestore } from "../../src/snapshot/operations/undo.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import {
  createOutsideWorld,
  differences,
  openMission,
  otherFileSystem,
  recordTree,
  type World,
} from "../snapshot/restore-world.ts";
import { runRestore } from "./kill.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
/** Points of the restore of a missing cell, of a restore into a directory, and rare ones: other tests reach them. */
const ELSEWHERE = /\.(to-|rebuil|undo-forgotten|put-back|set-aside|copied-across|sidecar-|worktree-)/;
const points = listCrashPoints(here("../../src/snapshot"))
  .map(({ name }) => name)
  .filter((name) => name.startsWith("snapshot.restore."));

let base: string;
let other: string | undefined;

beforeAll(() => {
  base = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "lazarus-kill-outside-")));
  other = otherFileSystem();
  if (other === undefined) console.log("skipped on another file system: there is none that can be used");
});

afterAll(() => {
  for (const directory of [base, other])
    if (directory !== undefined) fs.rmSync(directory, { recursive: true, force: true });
});

interface Fixture extends Disposable {
  readonly world: World;
  readonly first: string;
  readonly before: Map<string, string>;
  readonly after: Map<string, string>;
  see(): Map<string, string>;
}

/** Cell and worktree as one tree. */
function recordBoth(world: World): Map<string, string> {
  const both = recordTree(world.cell);
  for (const [path, facts] of recordTree(world.path("worktree")))
    both.set(path === "." ? "worktree" : `worktree/${path}`, facts);
  return both;
}

let count = 0;

async function createFixture({ root, mode }: Place): Promise<Fixture> {
  count += 1;
  const home = fs.mkdtempSync(join(base, "home-"));
  const world = await createOutsideWorld(home, join(root, `${count}`, "project"));
  fs.chmodSync(join(world.path("worktree"), ".."), mode);
  for (const name of ["a", "b"]) world.write(`worktree/${name}`, `${name} of then`);
  world.write("worktree/gone/deep", "will be removed");
  world.write("worktree/type", "a file then, a directory later");
  world.write("worktree/mode", "only its mode changes");
  world.write("state/note", "then");
  fs.linkSync(world.path("worktree/a"), world.path("worktree/a-too"));
  fs.utimesSync(world.path("worktree"), 5, 5);
  const first = (await world.checkpoint()).ref.id;
  const after = recordBoth(world);
  for (const name of ["a", "b"]) world.write(`worktree/${name}`, `${name} of now, and longer`);
  fs.rmSync(world.path("worktree/gone"), { recursive: true });
  fs.rmSync(world.path("worktree/type"));
  world.write("worktree/type/1", "x");
  world.write("worktree/type/2/3", "x");
  world.write("worktree/new/1", "x");
  fs.chmodSync(world.path("worktree/mode"), 0o600);
  world.write("state/note", "now");
  const before = recordBoth(world);
  const see = () => recordBoth(world);
  return { world, first, before, after, see, [Symbol.dispose]: () => world[Symbol.dispose]() };
}

const kill = async (point: string, ...args: string[]) => (await runRestore(args, point)).signal;

function expectNoTraces(world: World): void {
  const worktree = world.path("worktree");
  for (const directory of [dirname(worktree), worktree, join(world.cell, "..")]) {
    const ours = fs.readdirSync(directory).filter((name) => /^\.lazarus-(restore|aside)/.test(name));
    expect(ours, directory).toEqual([]);
  }
}

interface Place {
  readonly root: string;
  /** Of the directory above the worktree: where others can write to it, files are staged inside, or copied. */
  readonly mode: number;
}

const places = (): Place[] => [
  { root: base, mode: 0o755 },
  ...(other === undefined ? [] : [0o755, 0o1777, 0o777].map((mode) => ({ root: other!, mode }))),
];

describe.concurrent("a restore of a worktree outside the cell, killed with SIGKILL", () => {
  for (const point of points.filter((name) => !ELSEWHERE.test(name))) {
    it(`at ${point}: the next checkpoint captures the old or the new state`, async () => {
      for (const place of places()) {
        using fixture = await createFixture(place);
        const { world, first, before, after } = fixture;
        expect(await kill(point, world.directory, "restore", first), `${point} is never reached`).toBe(
          "SIGKILL",
        );
        const isJournalled = fs.existsSync(world.context.vault.journalFile);
        expect((await takeCheckpoint(world.reopen(), { reason: "manual" })).flaws).toEqual([]);
        const [fromOld, fromNew] = [before, after].map((each) => differences(each, fixture.see()));
        if (isJournalled || fromOld!.length > 0) expect(fromNew).toEqual([]);
        expectNoTraces(world);
        if (fromNew!.length === 0) await undoRestore(world.reopen());
        expect(differences(before, fixture.see())).toEqual([]);
        expect((await verifyVault(world.context.vault, { deep: true })).findings).toEqual([]);
      }
    });
  }

  it("with the staging directories removed, as by a reboot: the files come from the vault", async () => {
    for (const place of places()) {
      using fixture = await createFixture(place);
      const { world, first, after } = fixture;
      await kill("snapshot.restore.placed#2", world.directory, "restore", first);
      for (const directory of [
        join(world.cell, ".."),
        join(world.path("worktree"), ".."),
        world.path("worktree"),
      ])
        for (const name of fs.readdirSync(directory).filter((each) => each.startsWith(".lazarus-restore-")))
          fs.rmSync(join(directory, name), { recursive: true });
      const { finished } = await restoreCell(world.reopen(), { checkpoint: first });
      expect(finished?.flaws).toEqual([]);
      expect(differences(after, fixture.see())).toEqual([]);
    }
  });

  it("with another directory in its place: nothing is written there, and the right one is finished later", async () => {
    using fixture = await createFixture({ root: base, mode: 0o755 });
    const { world, first, after } = fixture;
    const worktree = world.path("worktree");
    await kill("snapshot.restore.placed#2", world.directory, "restore", first);
    fs.renameSync(worktree, `${worktree}-moved`);
    fs.mkdirSync(worktree);
    await expect(takeCheckpoint(world.reopen(), { reason: "manual" })).rejects.toMatchObject({
      code: "WORKTREE_REPLACED",
    });
    expect(fs.readdirSync(worktree)).toEqual([]);
    fs.rmdirSync(worktree);
    fs.renameSync(`${worktree}-moved`, worktree);
    expect((await takeCheckpoint(world.reopen(), { reason: "manual" })).flaws).toEqual([]);
    expect(differences(after, fixture.see())).toEqual([]);
  });

  it("with the directory moved: confirming the move finishes the restore there", async () => {
    using fixture = await createFixture({ root: base, mode: 0o755 });
    const { world, first } = fixture;
    const worktree = world.path("worktree");
    await kill("snapshot.restore.placed#2", world.directory, "restore", first);
    fs.renameSync(worktree, `${worktree}-moved`);
    await protectDirectory(world.reopen(), `${worktree}-moved`, undefined);
    expect((await takeCheckpoint(world.reopen(), { reason: "manual" })).flaws).toEqual([]);
    expect(fs.readFileSync(`${worktree}-moved/b`, "utf8")).toBe("b of then");
    fs.rmSync(`${worktree}-moved`, { recursive: true });
  });
});

describe.concurrent("a restore of a worktree that is missing, killed with SIGKILL", () => {
  for (const point of points.filter((name) => name.startsWith("snapshot.restore.worktree-"))) {
    it(`at ${point}: repeated, it rebuilds the directory`, async () => {
      for (const place of places()) {
        using fixture = await createFixture(place);
        const { world, first, after } = fixture;
        fs.rmSync(world.path("worktree"), { recursive: true });
        expect(await kill(point, world.directory, "restore", first)).toBe("SIGKILL");
        await restoreCell(world.reopen(), { checkpoint: first });
        expect(differences(after, fixture.see())).toEqual([]);
      }
    });
  }
});

describe.concurrent("the setup of a worktree, killed with SIGKILL", () => {
  for (const { name } of listCrashPoints(here("../../src/snapshot")).filter(({ name }) =>
    name.includes(".protect."),
  )) {
    it(`at ${name}: repeated, it is complete`, async () => {
      const home = fs.mkdtempSync(join(base, "home-"));
      const worktree = fs.mkdtempSync(join(base, "new-"));
      fs.writeFileSync(join(worktree, "file"), "x");
      expect(await kill(name, home, "protect", worktree)).toBe("SIGKILL");
      expect(fs.readdirSync(worktree)).toEqual(["file"]);
      await protectDirectory(openMission(home, "m"), worktree, undefined);
      const { checkpoint, flaws } = await takeCheckpoint(openMission(home, "m"), { reason: "manual" });
      expect(flaws).toEqual([]);
      expect(checkpoint.metadata.counts.files).toBeGreaterThan(3);
    });
  }
});
