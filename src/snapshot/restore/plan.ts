// What a restore in place has to do: the difference of two listings, as steps. Pure (INV-3): it decides what is touched
// and, by what it leaves out, that nothing else is. Only what the listing of now holds is ever replaced or removed, so
// that everything that goes is in the safety checkpoint. Steps can be done again after a crash with the same result.
import type { Entry, EntryType, Listing } from "../model/entry.ts";
import { comparePaths, parentPath } from "../model/path-bytes.ts";
import { SIDECAR_SUFFIXES } from "../model/sqlite-files.ts";
import { ancestors, type Scope, WHOLE_CELL } from "./scope.ts";

/** Enough of a path's lstat to say "this is what the safety checkpoint saw". */
export interface Fingerprint {
  readonly type: EntryType;
  readonly size: number;
  readonly mtimeSec: number;
  readonly mtimeNs: number;
  readonly mode: number;
}

/** A directory that must be there. `set`: it gets the checkpoint's mode, owner and time; else only when it is made. */
export interface DirectoryStep {
  readonly entry: Entry;
  readonly was: Fingerprint | null;
  readonly set: boolean;
}

/** Anything but a directory, made beside the cell and renamed into place. */
export interface PlaceStep {
  readonly entry: Entry;
  readonly was: Fingerprint | null;
  /** Index of the step whose inode this path shares; its own index for the first of them. */
  readonly inode: number;
}

/** Mode, owner, xattrs or time of something whose content is right already. */
export interface AdjustStep {
  readonly entry: Entry;
  readonly was: Fingerprint;
}

export interface RemoveStep {
  readonly path: string;
  readonly was: Fingerprint;
}

export interface Kept {
  readonly path: string;
  readonly reason: string;
}

export interface RestorePlan {
  /** What stands where the checkpoint has another type; children first. */
  readonly clear: readonly RemoveStep[];
  /** Parents first. */
  readonly directories: readonly DirectoryStep[];
  readonly place: readonly PlaceStep[];
  readonly adjust: readonly AdjustStep[];
  /** What the checkpoint does not have; children first. */
  readonly remove: readonly RemoveStep[];
  /** Listed files that look like the log of a database that is replaced or removed: they have their own steps. */
  readonly sidecars: readonly string[];
  /** The same in the user's words, each path once, in path order. */
  readonly changes: Changes;
}

export interface Changes {
  readonly added: readonly string[];
  readonly changed: readonly string[];
  readonly metadata: readonly string[];
  readonly removed: readonly string[];
  readonly kept: readonly Kept[];
}

export function countChanges(changes: Changes): Record<keyof Changes, number> {
  return {
    added: changes.added.length,
    changed: changes.changed.length,
    metadata: changes.metadata.length,
    removed: changes.removed.length,
    kept: changes.kept.length,
  };
}

export interface PlanOptions {
  readonly scope?: Scope;
  /** Patterns that the checkpoint left out: what they match is never removed. */
  readonly wasExcluded?: (path: string) => boolean;
  /** Paths that were there and that the checkpoint could not save: it cannot say that they are to go. */
  readonly wasSkipped?: ReadonlySet<string>;
  /** Patterns that the safety checkpoint left out: what they match has no second copy and is never touched. */
  readonly isExcluded?: (path: string) => boolean;
  /** Whether this process may give files to other owners. */
  readonly owners: boolean;
}

export function planRestore(now: Listing, target: Listing, options: PlanOptions): RestorePlan {
  const { scope = WHOLE_CELL, owners } = options;
  const keeping = findKept(now, target, scope, options);
  const removed: RemoveStep[] = [];
  for (const [path, before] of now) {
    if (path === "." || !scope.has(path) || target.has(path) || keeping.keeps(path)) continue;
    removed.push({ path, was: fingerprint(before)! });
  }
  const { directories, place, adjust, changes } = compareListings(now, target, {
    wanted: (path) => scope.has(path) && !keeping.keeps(path),
    owners,
  });

  // A directory must be emptied before something else can stand in its place.
  const obstacles = new Set(
    place.filter(({ was }) => was?.type === "directory").map(({ entry }) => entry.path),
  );
  const clear: RemoveStep[] = [...obstacles].map((path) => ({ path, was: fingerprint(now.get(path))! }));
  const remove: RemoveStep[] = [];
  for (const step of removed) {
    const below = obstacles.size > 0 && ancestors(step.path).some((above) => obstacles.has(above));
    (below ? clear : remove).push(step);
  }

  const touched = new Set<string>();
  for (const { entry } of place) touched.add(parentPath(entry.path));
  for (const { path } of [...clear, ...remove]) touched.add(parentPath(path));
  for (const path of directories.keys()) if (path !== ".") touched.add(parentPath(path));
  const parents = new Set<string>();
  for (const path of [...touched, ...adjust.map(({ entry }) => parentPath(entry.path))]) {
    for (const each of [path, ...ancestors(path)]) parents.add(each);
  }
  for (const path of parents) {
    const entry = target.get(path);
    if (directories.has(path) || entry?.type !== "directory" || keeping.keeps(path)) continue;
    const before = now.get(path);
    directories.set(path, { entry, was: fingerprint(before), set: touched.has(path) && scope.has(path) });
    // Only above a named path can a parent be missing, or be no directory, without being planned already.
    if (before === undefined) changes.added.push(path);
    else if (before.type !== "directory") changes.changed.push(path);
  }

  const childrenFirst = (a: RemoveStep, b: RemoveStep) => comparePaths(b.path, a.path);
  return {
    clear: clear.sort(childrenFirst),
    directories: [...directories.values()].sort((a, b) => comparePaths(a.entry.path, b.entry.path)),
    place,
    adjust,
    remove: remove.sort(childrenFirst),
    sidecars: listedSidecars(
      [...place.map(({ entry }) => entry.path), ...remove.map(({ path }) => path)],
      now,
      target,
    ),
    changes: {
      added: changes.added.sort(comparePaths),
      changed: changes.changed.sort(comparePaths),
      metadata: changes.metadata.sort(comparePaths),
      removed: removed.map(({ path }) => path).sort(comparePaths),
      kept: [...keeping.kept].sort((a, b) => comparePaths(a.path, b.path)),
    },
  };
}

function listedSidecars(paths: readonly string[], now: Listing, target: Listing): string[] {
  const names = paths.flatMap((path) => SIDECAR_SUFFIXES.map((suffix) => path + suffix));
  return names.filter((name) => now.has(name) || target.has(name));
}

interface Comparison {
  readonly wanted: (path: string) => boolean;
  readonly owners: boolean;
}

/** Every wanted path of the target against now. */
function compareListings(now: Listing, target: Listing, { wanted, owners }: Comparison) {
  const changes = { added: [] as string[], changed: [] as string[], metadata: [] as string[] };
  const directories = new Map<string, DirectoryStep>();
  const place: PlaceStep[] = [];
  const adjust: AdjustStep[] = [];
  const units: (readonly Entry[])[] = [];
  const groups = new Map<string, Entry[]>();

  const put = (entry: Entry, inode: number) => {
    const before = now.get(entry.path);
    (before === undefined ? changes.added : changes.changed).push(entry.path);
    place.push({ entry, was: fingerprint(before), inode });
  };

  for (const [path, entry] of target) {
    const before = now.get(path);
    // The same object: both checkpoints have it from the same layer. Groups are looked at as a whole.
    if (before === entry && entry.group === undefined) continue;
    if (!wanted(path)) continue;
    if (entry.type === "file") {
      const mates = entry.group === undefined ? undefined : groups.get(entry.group);
      if (mates !== undefined) mates.push(entry);
      else {
        const unit = [entry];
        units.push(unit);
        if (entry.group !== undefined) groups.set(entry.group, unit);
      }
    } else if (entry.type === "directory") {
      if (before === undefined) changes.added.push(path);
      else if (before.type !== "directory") changes.changed.push(path);
      else if (!sameMetadata(before, entry, owners)) changes.metadata.push(path);
      else continue;
      directories.set(path, { entry, was: fingerprint(before), set: true });
    } else if (before?.type !== entry.type || before.target !== entry.target) put(entry, place.length);
    else if (!sameMetadata(before, entry, owners)) {
      changes.metadata.push(path);
      adjust.push({ entry, was: fingerprint(before)! });
    }
  }

  const linked = linkedNames(now, target, wanted);
  for (const unit of units) {
    const first = unit[0]!;
    const verdict = compareUnit(unit, now, linked, owners);
    if (verdict === "content") {
      const inode = place.length;
      for (const entry of unit) put(entry, inode);
    } else if (verdict === "metadata") {
      for (const { path } of unit) changes.metadata.push(path);
      adjust.push({ entry: first, was: fingerprint(now.get(first.path))! });
    }
  }
  return { changes, directories, place, adjust };
}

interface Keeping {
  /** The topmost paths only; what lies below them is kept with them. */
  readonly kept: readonly Kept[];
  keeps(path: string): boolean;
}

/** What the restore must leave alone, and the directories that have to stay because of it. */
function findKept(now: Listing, target: Listing, scope: Scope, options: PlanOptions): Keeping {
  const untouchable = withAncestors(options.isExcluded);
  const leftOut = withAncestors(options.wasExcluded);
  const unsaved = withAncestors(options.wasSkipped && ((path) => options.wasSkipped!.has(path)));
  const kept = new Map<string, Kept>();
  const keep = (path: string, covers: (path: string) => boolean, reason: string) => {
    if (covers(path) && !covers(parentPath(path))) kept.set(path, { path, reason });
  };
  for (const path of target.keys()) {
    if (path !== "." && scope.has(path))
      keep(path, untouchable, "left out of checkpoints now: there is no second copy of it");
  }
  for (const path of now.keys()) {
    if (path === "." || target.has(path) || !scope.has(path)) continue;
    keep(path, leftOut, "the checkpoint had left it out");
    // A directory that could not be read is in the checkpoint; what was in it is not.
    if (unsaved(path) && (target.has(parentPath(path)) || !unsaved(parentPath(path))))
      kept.set(path, { path, reason: "the checkpoint could not save what was there then" });
    keep(path, untouchable, "left out of checkpoints now: there is no second copy of it");
  }
  const holders = new Map<string, string>();
  for (const path of kept.keys()) for (const above of ancestors(path)) holders.set(above, path);
  for (const [path, held] of holders) {
    // A directory in both stays anyway and gets the checkpoint's mode and time.
    if (target.get(path)?.type === "directory" || now.get(path)?.type !== "directory" || !scope.has(path)) {
      holders.delete(path);
    } else kept.set(path, { path, reason: `a directory that holds ${held}, which is kept` });
  }
  const isKept = (path: string) =>
    untouchable(path) || ((leftOut(path) || unsaved(path)) && !target.has(path));
  return { kept: [...kept.values()], keeps: (path) => isKept(path) || holders.has(path) };
}

export function isEmptyPlan(plan: Pick<RestorePlan, "changes">): boolean {
  const { added, changed, metadata, removed } = plan.changes;
  return added.length + changed.length + metadata.length + removed.length === 0;
}

/** The whole of a file's paths in the target, against what they are now. */
function compareUnit(
  unit: readonly Entry[],
  now: Listing,
  linked: (path: string) => readonly string[],
  owners: boolean,
): "same" | "metadata" | "content" {
  const [first] = unit;
  const before = unit.map(({ path }) => now.get(path));
  const one = before[0];
  if (first === undefined || one === undefined) return "content";
  for (const [i, entry] of before.entries()) {
    if (entry?.type !== "file" || !sameContent(entry, first)) return "content";
    if (i > 0 && (entry.group === undefined || entry.group !== one.group)) return "content";
  }
  const mates = new Set(unit.map(({ path }) => path));
  if (!linked(first.path).every((path) => mates.has(path))) return "content";
  if (sameMetadata(one, first, owners)) return "same";
  // A linked file may have names that no listing shows, left out or outside the cell: it is replaced, not altered.
  return one.group === undefined ? "metadata" : "content";
}

/** For a path of now: the names of its inode that the target has as files. */
function linkedNames(
  now: Listing,
  target: Listing,
  wanted: (path: string) => boolean,
): (path: string) => readonly string[] {
  const groups = new Map<string, string[]>();
  for (const [path, { group }] of now) {
    if (group === undefined || target.get(path)?.type !== "file" || !wanted(path)) continue;
    const mates = groups.get(group);
    if (mates === undefined) groups.set(group, [path]);
    else mates.push(path);
  }
  return (path) => groups.get(now.get(path)?.group ?? "") ?? [];
}

/** The digest of a sparse file is that of its data alone, so that the holes have to be compared, too. */
function sameContent(a: Entry, b: Entry): boolean {
  if (a.sha256 !== b.sha256 || a.size !== b.size) return false;
  return a.extents === b.extents || JSON.stringify(a.extents) === JSON.stringify(b.extents);
}

export function sameMetadata(a: Entry, b: Entry, owners: boolean): boolean {
  return (
    a.mtimeSec === b.mtimeSec &&
    a.mtimeNs === b.mtimeNs &&
    // Links have no mode of their own on Linux.
    (a.mode === b.mode || a.type === "symlink") &&
    (!owners || (a.uid === b.uid && a.gid === b.gid)) &&
    sameXattrs(a.xattrs, b.xattrs)
  );
}

function sameXattrs(a: Entry["xattrs"] = [], b: Entry["xattrs"] = []): boolean {
  if (a.length !== b.length) return false;
  const values = new Map(a);
  return b.every(([name, value]) => values.get(name) === value);
}

function fingerprint(entry: Entry | undefined): Fingerprint | null {
  if (entry === undefined) return null;
  const { type, size, mtimeSec, mtimeNs, mode } = entry;
  return { type, size, mtimeSec, mtimeNs, mode };
}

/** A pattern that matches a directory covers all that is in it. */
function withAncestors(matches: ((path: string) => boolean) | undefined): (path: string) => boolean {
  if (matches === undefined) return () => false;
  const known = new Map<string, boolean>([[".", false]]);
  const covers = (path: string): boolean => {
    const answer = known.get(path);
    if (answer !== undefined) return answer;
    const found = covers(parentPath(path)) || matches(path);
    known.set(path, found);
    return found;
  };
  return covers;
}
