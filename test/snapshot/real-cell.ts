// A small realistic cell with every type of file, and every kind of change, for black-box tests.
import {
  chmodSync,
  closeSync,
  ftruncateSync,
  linkSync,
  lutimesSync,
  mkdirSync,
  openSync,
  renameSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { initCell } from "../../src/cell/init.ts";
import { posixSupport } from "../../src/platform/posix.ts";
import type { MissionContext } from "../../src/snapshot/mission-context.ts";
import { listTree as listLines } from "./list-tree.ts";
import { isInstalled } from "./tools.ts";

export interface ListedPath {
  readonly path: string;
  readonly type: string;
  readonly [field: string]: unknown;
}

/** Lists a directory with list_tree.py, which shares no code with Lazarus. */
export function listTree(root: string, ...skip: string[]): ListedPath[] {
  return listLines(root, ...skip).map((line) => JSON.parse(line));
}

export function canList(): boolean {
  return isInstalled("python3", "trees listed by an independent Python script");
}

export function makeRealCell(context: MissionContext): string {
  initCell(context.machine, context.config, context.mission);
  const worktree = join(context.cellRoot, "worktree");
  const at = (...parts: string[]) => join(worktree, ...parts);
  mkdirSync(at("src", "deep", "er"), { recursive: true });
  mkdirSync(at("empty"));
  mkdirSync(at("going", "inside"), { recursive: true });
  mkdirSync(at("turns"));
  writeFileSync(at("README"), "hello\n");
  writeFileSync(at("src", "main.ts"), "export {};\n".repeat(300));
  writeFileSync(at("src", "deep", "er", "x"), "");
  writeFileSync(at("going", "inside", "gone"), "gone soon");
  writeFileSync(at("going", "stays"), "stays");
  writeFileSync(at("turns", "child"), "child");
  writeFileSync(at("plain"), "a file that becomes a directory");
  writeFileSync(at("tool"), "#!/bin/sh\n", { mode: 0o755 });
  chmodSync(at("tool"), 0o4755);
  writeFileSync(at("linked"), "one inode, three names\n");
  linkSync(at("linked"), at("src", "linked-too"));
  linkSync(at("linked"), at("zz-linked"));
  symlinkSync("README", at("good-link"));
  symlinkSync("../../../nowhere/at/all", at("dangling"));
  writeFileSync(at(".wh.looks-like-a-whiteout"), "and is a file");
  writeFileSync(at(".lazarus.wh.looks-like-a-whiteout"), "and looks like the escape of one");
  writeFileSync(Buffer.concat([Buffer.from(at("caf")), Buffer.of(0xe9)]), "latin-1 name");
  writeFileSync(at("n".repeat(120)), "long name");
  writeFileSync(at(".env"), "SECRET=1\n");
  writeFileSync(at("holes"), "");
  makeHoles(
    at("holes"),
    [
      [0, "start"],
      [5_000_000, "middle"],
    ],
    9_000_000,
  );
  makeHoles(at("only-a-hole"), [], 1_000_000);
  writeFileSync(at("large"), Buffer.alloc(6 << 20, "0123456789abcdef\n"));
  const support = posixSupport();
  if (support.ok) {
    support.posix.makeFifo(at("pipe"), 0o640);
    support.posix.setXattr(at("README"), "user.lazarus", Buffer.from([0, 1, 2, 0xff]));
    support.posix.setXattr(at("src"), "user.directory", Buffer.from("yes"));
    support.posix.setTimes(at("README"), 1_600_000_000_123_456_789n, 1_600_000_000_123_456_789n);
    support.posix.setTimes(at("good-link"), 1_500_000_000_000_000_001n, 1_500_000_000_000_000_001n);
  }
  return worktree;
}

export function makeHoles(file: string, islands: readonly (readonly [number, string])[], size: number): void {
  const fd = openSync(file, "w");
  for (const [offset, text] of islands) writeSync(fd, text, offset);
  ftruncateSync(fd, size);
  closeSync(fd);
}

/** Rounds of changes; each is followed by a checkpoint. */
export const CHANGES: readonly ((worktree: string) => void)[] = [
  (worktree) => {
    const at = (...parts: string[]) => join(worktree, ...parts);
    rmSync(at("going", "inside"), { recursive: true });
    rmSync(at("turns"), { recursive: true });
    writeFileSync(at("turns"), "a directory that became a file");
    rmSync(at("plain"));
    mkdirSync(at("plain"));
    writeFileSync(at("plain", "below"), "below");
    rmSync(at("dangling"));
    writeFileSync(at("dangling"), "a link that became a file");
  },
  (worktree) => {
    const at = (...parts: string[]) => join(worktree, ...parts);
    writeFileSync(at("linked"), "changed through one of its names\n");
    rmSync(at("zz-linked"));
    renameSync(at("src", "deep"), at("src", "moved"));
    chmodSync(at("README"), 0o600);
    utimesSync(at("empty"), 1_400_000_000, 1_400_000_000);
    makeHoles(at("holes"), [[1_000_000, "elsewhere"]], 7_000_000);
    rmSync(at(".wh.looks-like-a-whiteout"));
    writeFileSync(at(".wh.another"), "x");
  },
  (worktree) => {
    const at = (...parts: string[]) => join(worktree, ...parts);
    linkSync(at("README"), at("readme-too"));
    rmSync(at("plain"), { recursive: true });
    symlinkSync("src", at("plain"));
    writeFileSync(at(".env"), "SECRET=2\n");
    lutimesSync(at("plain"), 1_300_000_000, 1_300_000_000);
    writeFileSync(at("turns"), "again\n");
  },
];
