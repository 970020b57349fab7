// What changed in a cell between two moments, as a perfect watcher would report it: found by comparing the stat of every path.
import fs from "node:fs";
import { diskPath } from "../../src/snapshot/model/cell-tree.ts";
import type { DirtySet } from "../../src/snapshot/model/dirty-set.ts";
import { decodePath, encodePath, joinPath } from "../../src/snapshot/model/path-bytes.ts";
import { someParent } from "../../src/snapshot/model/paths.ts";
import type { Random } from "../../src/testing/index.ts";
import type { Lab } from "./lab.ts";

/** The stat of every path of a cell. */
export type Moment = ReadonlyMap<string, string>;

export function momentOf({ context }: Lab): Moment {
  const moment = new Map<string, string>();
  const visit = (path: string) => {
    const file = encodePath(diskPath(context.tree, path));
    const stat = fs.lstatSync(file, { bigint: true, throwIfNoEntry: false });
    if (stat === undefined) return;
    const { dev, ino, mode, nlink, size, mtimeNs, ctimeNs } = stat;
    moment.set(path, [dev, ino, mode, nlink, size, mtimeNs, ctimeNs].join(" "));
    if (!stat.isDirectory()) return;
    try {
      for (const name of fs.readdirSync(file, { encoding: "buffer" }))
        visit(joinPath(path, decodePath(name)));
    } catch {
      // This user cannot read it.
    }
  };
  visit(".");
  return moment;
}

export function dirtySince(then: Moment, now: Moment): DirtySet {
  const paths = new Set<string>();
  for (const [path, stat] of now) if (then.get(path) !== stat) paths.add(path);
  for (const path of then.keys()) if (!now.has(path)) paths.add(path);
  return { paths, trees: new Set() };
}

/**
 * The dirty set as the kernel reports it: nothing below a directory that appeared, and below one that disappeared only what
 * changed before that.
 */
export function asReported({ paths }: DirtySet, then: Moment, now: Moment): DirtySet {
  const appeared = new Set<string>();
  const moved = new Set<string>();
  for (const path of paths) {
    const [before, after] = [then, now].map((moment) => inodeOf(moment.get(path)));
    if (before === after || path === ".") continue;
    moved.add(path);
    if (after !== undefined) appeared.add(path);
  }
  const isBelow = (path: string) => someParent(path, (parent) => moved.has(parent));
  return {
    paths: new Set([...paths].filter((path) => !isBelow(path))),
    trees: new Set([...appeared].filter((path) => !isBelow(path))),
  };
}

function inodeOf(stat: string | undefined): string | undefined {
  return stat?.split(" ", 2).join(" ");
}

/** Adds paths that did not change or never existed: a dirty set may always name more. */
export function withNoise({ paths, trees }: DirtySet, moment: Moment, random: Random): DirtySet {
  const known = [...moment.keys()];
  const noise = () => {
    const path = random.pick(known);
    return random.chance(0.3) ? joinPath(path, "never there") : path;
  };
  return {
    paths: new Set([...paths, ...Array.from({ length: random.int(0, 5) }, noise)]),
    trees: new Set([...trees, ...(random.chance(0.3) ? [noise()] : [])]),
  };
}
