// A directory of the cell that another process replaces by a link to the outside, in the middle of a checkpoint or a
// restore: nothing outside is read or written.
import fs from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemDisk } from "../../src/platform/disk.ts";
import { type Posix, posixSupport } from "../../src/platform/posix.ts";
import type { MissionContext, Progress } from "../../src/snapshot/mission-context.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { copyDatabase } from "../../src/snapshot/pack/copy-databases.ts";
import { NO_ROWS } from "../../src/snapshot/scan/stat-rows.ts";
import { createWalker } from "../../src/snapshot/scan/walk.ts";
import { createLab, type Lab } from "./lab.ts";
import { recordTree } from "./restore-world.ts";

let lab: Lab;
let outside: string;
beforeEach(() => {
  lab = createLab();
  outside = join(lab.directory, "outside");
  fs.mkdirSync(outside);
});
afterEach(() => lab[Symbol.dispose]());

const LARGE = 5 << 20;
const inCell = (path: string) => join(lab.worktree, path);

/** Moves a directory of the cell away and puts a link to the outside in its place. */
function swap(directory: string): void {
  fs.renameSync(directory, `${directory}.moved`);
  fs.symlinkSync(outside, directory);
}

/** Runs `act` when the first file of a layer is created: after the walk, before anything is read. */
function beforePacking(context: MissionContext, act: () => void): MissionContext {
  let done = false;
  const disk = {
    ...systemDisk,
    create(path: string | Buffer, mode: number) {
      if (!done && path.toString().endsWith("/layer")) {
        done = true;
        act();
      }
      return systemDisk.create(path, mode);
    },
  };
  return { ...context, machine: { ...context.machine, disk } };
}

/** Runs `act` once, at the first progress of a phase. */
function atProgress(context: MissionContext, phase: Progress["phase"], act: () => void): MissionContext {
  let done = false;
  return {
    ...context,
    onProgress(progress) {
      if (done || progress.phase !== phase) return;
      done = true;
      act();
    },
  };
}

describe("a directory that becomes a link to the outside during a checkpoint", () => {
  it("is stored as a link: no file, link, attribute or large file behind it is", async () => {
    fs.mkdirSync(inCell("z/sub"), { recursive: true });
    fs.mkdirSync(join(outside, "sub"));
    for (const [root, mark] of [[inCell("z"), "inside"] as const, [outside, "SECRET"] as const]) {
      fs.writeFileSync(join(root, "small"), mark);
      fs.writeFileSync(join(root, "sub", "deep"), mark);
      fs.writeFileSync(join(root, "large"), Buffer.alloc(LARGE, mark));
      fs.symlinkSync(mark, join(root, "link"));
      const support = posixSupport();
      if (support.ok) support.posix.setXattr(join(root, "small"), "user.mark", Buffer.from(mark));
    }
    const context = beforePacking(lab.context, () => swap(inCell("z")));
    const { flaws, ref } = await takeCheckpoint(context, { reason: "manual", git: false });
    const listing = JSON.stringify([...lab.listing(ref.id)]);
    expect(listing).not.toContain("SECRET");
    expect(listing).not.toContain(Buffer.from("SECRET").toString("base64"));
    for (const path of ["small", "sub/deep", "large", "link"]) {
      expect(lab.listing(ref.id).has(`worktree/z.moved/${path}`)).toBe(true);
      expect(lab.listing(ref.id).has(`worktree/z/${path}`)).toBe(false);
    }
    expect(flaws).toEqual([]);
  });

  it("is not entered by the walk", () => {
    fs.mkdirSync(inCell("z"));
    fs.writeFileSync(join(outside, "SECRET"), "outside");
    let swapped = false;
    const walker = createWalker({
      root: lab.cell,
      rows: NO_ROWS,
      // Called for every name of a directory before any of its subdirectories is read.
      isExcluded(path) {
        if (path !== "worktree/zz") return false;
        swap(inCell("z"));
        swapped = true;
        return true;
      },
    });
    fs.writeFileSync(inCell("zz"), "");
    const walk = walker.walk();
    expect(swapped).toBe(true);
    expect([...walk.found.keys()]).not.toContain("worktree/z/SECRET");
    expect([...walk.flaws.keys()]).toContain("worktree/z");
  });

  it("does not let SQLite copy a database from outside", async () => {
    fs.mkdirSync(inCell("z"));
    for (const [root, mark] of [[inCell("z"), "inside"] as const, [outside, "SECRET"] as const]) {
      using database = new DatabaseSync(join(root, "data.db"));
      database.exec(`PRAGMA journal_mode = wal; CREATE TABLE t (v); INSERT INTO t VALUES ('${mark}')`);
    }
    const scratch = join(lab.directory, "scratch");
    fs.mkdirSync(scratch);
    const fine = await copyDatabase(lab.cell, "worktree/z/data.db", scratch);
    expect(fine.flaw).toBeUndefined();
    fs.rmSync(fine.source);
    swap(inCell("z"));
    const { flaw } = await copyDatabase(lab.cell, "worktree/z/data.db", scratch);
    expect(flaw?.reason).toContain("outside the cell");
    expect(fs.readdirSync(scratch)).toEqual([]);
  });
});

describe("a directory that becomes a link to the outside during a restore", () => {
  const FILES = 600;
  const fill = (mark: string) => {
    for (let n = 0; n < FILES; n += 1) fs.writeFileSync(inCell(`z/f${n}`), `${mark} ${n}`);
  };

  it("is not written through: the rest goes to the moved directory, or is a flaw", async () => {
    fs.mkdirSync(inCell("z"));
    fill("then");
    const { ref } = await lab.checkpoint();
    fill("now, and longer");
    fs.writeFileSync(join(outside, "f599"), "outside");
    const before = recordTree(outside);
    const context = atProgress(lab.context, "restoring", () => swap(inCell("z")));
    const { flaws } = await restoreCell(context, { checkpoint: ref.id });
    expect(fs.lstatSync(inCell("z")).isSymbolicLink()).toBe(true);
    expect(recordTree(outside)).toEqual(before);
    expect(flaws.filter(({ path }) => path.startsWith("worktree/z/f")).length).toBe(FILES);
  });

  it("is not deleted through", async () => {
    fs.mkdirSync(inCell("z"));
    const { ref } = await lab.checkpoint();
    fill("added later");
    for (let n = 0; n < FILES; n += 1) fs.linkSync(inCell(`z/f${n}`), join(outside, `f${n}`));
    const context = atProgress(lab.context, "restoring", () => swap(inCell("z")));
    await restoreCell(context, { checkpoint: ref.id });
    expect(fs.readdirSync(outside).length).toBe(FILES);
  });

  it("is not given modes, times and attributes", async () => {
    fs.mkdirSync(inCell("z"));
    fill("same");
    const { ref } = await lab.checkpoint();
    for (let n = 0; n < FILES; n += 1) fs.chmodSync(inCell(`z/f${n}`), 0o600);
    const { posix } = posixSupport() as { posix: Posix };
    for (let n = 0; n < FILES; n += 1) {
      fs.writeFileSync(join(outside, `f${n}`), `same ${n}`, { mode: 0o600 });
      const { mtimeNs } = fs.statSync(inCell(`z/f${n}`), { bigint: true });
      posix.setTimes(join(outside, `f${n}`), mtimeNs, mtimeNs);
    }
    const modes = () =>
      fs.readdirSync(outside).filter((name) => fs.statSync(join(outside, name)).mode & 0o077);
    expect(modes()).toEqual([]);
    const context = atProgress(lab.context, "restoring", () => swap(inCell("z")));
    await restoreCell(context, { checkpoint: ref.id });
    expect(modes()).toEqual([]);
  });

  it("is not written through by a restore into a directory", async () => {
    for (let n = 0; n < 40; n += 1) {
      fs.mkdirSync(inCell(`d${n}`));
      fs.writeFileSync(inCell(`d${n}/file`), Buffer.alloc(1 << 20, `content ${n}`));
    }
    const { ref } = await lab.checkpoint();
    const directory = join(lab.directory, "target");
    const context = atProgress(lab.context, "restoring", () => {
      for (let n = 0; n < 40; n += 1) {
        fs.renameSync(join(directory, `worktree/d${n}`), join(directory, `worktree/moved${n}`));
        fs.symlinkSync(outside, join(directory, `worktree/d${n}`));
      }
    });
    await restoreTo(context, { checkpoint: ref.id, directory }).catch(() => {});
    expect(fs.readdirSync(outside)).toEqual([]);
  });
});
