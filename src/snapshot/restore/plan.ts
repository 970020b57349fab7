// Plans a restore in place: the difference of two listings, as steps. Pure. Only paths in the current listing are replaced
// or removed, so everything that is lost is in the safety checkpoint (INV-3). Steps are idempotent: after a crash they can
// be repeated.
import type { Entry, EntryType, Listing } from "../model/entry.ts";
import { comparePaths, parentPath } from "../model/path-bytes.ts";
import { SIDECAR_SUFFIXES } from "../model/sqlite-files.ts";
import { ancestors, type Scope, WHOLE_CELL } from "./scope.ts";

/** Enough of an lstat to recognize the file that the safety checkpoint contains. */
export interface Fingerprint {
  readonly type: EntryType;
  readonly size: number;
  readonly mtimeSec: number;
  readonly mtimeNs: number;
  readonly mode: number;
}

/** A directory that must exist. Without `set`, it gets the checkpoint's metadata only if it has to be created. */
export interface DirectoryStep {
  readonly entry: Entry;
  readonly was: Fingerprint | null;
  readonly set: boolean;
}

/** Anything but a directory: staged next to the cell, then renamed. */
export interface PlaceStep {
  readonly entry: Entry;
  readonly was: Fingerprint | null;
  /** Index of the step whose inode this path shares; its own index for the first name. */
  readonly inode: number;
}

/** Changes mode, owner, xattrs or time; the content already matches. */
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
  /** Paths whose type differs, and what is below them; children first. */
  readonly clear: readonly RemoveStep[];
  /** Parents first. */
  readonly directories: readonly DirectoryStep[];
  readonly place: readonly PlaceStep[];
  readonly adjust: readonly AdjustStep[];
  /** Paths that the checkpoint does not have; children first. */
  readonly remove: readonly RemoveStep[];
  /** Listed sidecar files of databases that are replaced or removed; they have their own steps. */
  readonly sidecars: readonly string[];
  /** Summary for the user: each path once, in path order. */
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
  /** Excluded from the checkpoint: never removed. */
  readonly wasExcluded?: (path: string) => boolean;
  /** Paths that the checkpoint could not save: never removed. */
  readonly wasSkipped?: ReadonlySet<string>;
  /** Excluded from the safety checkpoint: no copy exists, so never touched. */
  readonly isExcluded?: (path: string) => boolean;
  /** Whether this process may change owners. */
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

  // A directory must be emptied before it can be replaced.
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
    // Only a parent of a selected path can be missing, or not a directory, without having its own step.
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

/** Compares every wanted path of the target with the current listing. */
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
    // The same object comes from a shared layer. Hard links are compared as a group.
    if (before === entry && entry.group === undefined) continue;
    if (!wanted(path)) continue;
    if (entry.type === "file") {
      const siblings = entry.group === undefined ? undefined : groups.get(entry.group);
      if (siblings !== undefined) siblings.push(entry);
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
  /** Topmost paths only; everything below them is kept as well. */
  readonly kept: readonly Kept[];
  keeps(path: string): boolean;
}

/** Paths that the restore must not touch, and the directories that hold them. */
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
      keep(path, untouchable, "excluded from checkpoints now: no other copy exists");
  }
  for (const path of now.keys()) {
    if (path === "." || target.has(path) || !scope.has(path)) continue;
    keep(path, leftOut, "excluded from that checkpoint");
    // An unreadable directory is in the checkpoint, but its contents are not.
    if (unsaved(path) && (target.has(parentPath(path)) || !unsaved(parentPath(path))))
      kept.set(path, { path, reason: "the checkpoint could not save this path" });
    keep(path, untouchable, "excluded from checkpoints now: no other copy exists");
  }
  const holders = new Map<string, string>();
  for (const path of kept.keys()) for (const above of ancestors(path)) holders.set(above, path);
  for (const [path, held] of holders) {
    // A directory in both listings stays anyway and gets the checkpoint's metadata.
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

/** Compares all names of one inode in the target with the current listing. */
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
  const siblings = new Set(unit.map(({ path }) => path));
  if (!linked(first.path).every((path) => siblings.has(path))) return "content";
  if (sameMetadata(one, first, owners)) return "same";
  // A hard-linked file may have names outside the listings, so it is replaced instead of changed in place.
  return one.group === undefined ? "metadata" : "content";
}

/** For a current path: the names of its inode that are files in the target. */
function linkedNames(
  now: Listing,
  target: Listing,
  wanted: (path: string) => boolean,
): (path: string) => readonly string[] {
  const groups = new Map<string, string[]>();
  for (const [path, { group }] of now) {
    if (group === undefined || target.get(path)?.type !== "file" || !wanted(path)) continue;
    const siblings = groups.get(group);
    if (siblings === undefined) groups.set(group, [path]);
    else siblings.push(path);
  }
  return (path) => groups.get(now.get(path)?.group ?? "") ?? [];
}

/** The digest of a sparse file covers only its data, so the extents are compared as well. */
function sameContent(a: Entry, b: Entry): boolean {
  if (a.sha256 !== b.sha256 || a.size !== b.size) return false;
  return a.extents === b.extents || JSON.stringify(a.extents) === JSON.stringify(b.extents);
}

export function sameMetadata(a: Entry, b: Entry, owners: boolean): boolean {
  return (
    a.mtimeSec === b.mtimeSec &&
    a.mtimeNs === b.mtimeNs &&
    // Symlinks have no mode on Linux.
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

/** A match on a directory covers everything below it. */
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
