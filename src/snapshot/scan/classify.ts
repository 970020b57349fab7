// Decides what a checkpoint must store, by comparing the walk with the stat cache of the last checkpoint. Pure.
import type { CaptureItem } from "../model/capture-item.ts";
import type { Entry, Flaw } from "../model/entry.ts";
import { comparePaths, joinPath } from "../model/path-bytes.ts";
import type { Found, Walk } from "./found.ts";
import { nameAt } from "./name-table.ts";
import { cachedEntry, findRow, type StatCache, TYPE_CODES } from "./stat-cache.ts";

/** A file, or all names of one file: stored or skipped together. */
export interface Unit {
  readonly members: readonly Found[];
  readonly items: readonly CaptureItem[];
}

export interface Suspects {
  /** New or certainly different paths with a single name; stored without hashing. */
  readonly certain: CaptureItem[];
  /** The same for files with several names. */
  readonly certainGroups: Unit[];
  /** Known paths whose stat changed: hashed before they are stored. */
  readonly doubtful: Unit[];
}

export interface SortOptions {
  readonly walk: Pick<Walk, "found">;
  readonly cache: StatCache | undefined;
  /** Paths whose bytes are read from elsewhere (databases in use). */
  readonly sources: ReadonlyMap<string, string>;
  /** Paths that the checkpoint leaves out (sidecars of those databases). */
  readonly folded: ReadonlySet<string>;
  /** Prefix of the names of new hard-link groups. */
  readonly groupPrefix: string;
}

export function sortSuspects(options: SortOptions): Suspects {
  const { walk, cache, sources, folded } = options;
  const certain: CaptureItem[] = [];
  const certainGroups: Unit[] = [];
  const doubtful: Unit[] = [];
  const shared = new Map<string, Found[]>();
  for (const found of walk.found) {
    if (folded.size > 0 && folded.has(found.path)) continue;
    if (found.type === "file" && found.nlink > 1) {
      const others = shared.get(found.inode!);
      if (others === undefined) shared.set(found.inode!, [found]);
      else others.push(found);
      continue;
    }
    // The path is built only if needed: that takes 30 ms for 130,000 paths.
    if (found.unchanged && (sources.size === 0 || !sources.has(found.path))) continue;
    const item = toItem(found, sources);
    if (isDoubtful(cache, found, item.source)) doubtful.push({ members: [found], items: [item] });
    else certain.push(item);
  }
  const sizes = cache === undefined ? new Map<string, number>() : groupSizes(cache);
  let number = 0;
  for (const members of shared.values()) {
    const group = knownGroup(cache, members, sizes);
    // A database's log is next to one of its names, but its transactions belong to all of them.
    const source = members.map(({ path }) => sources.get(path)).find((copy) => copy !== undefined);
    const isUnchanged =
      members.length > 1
        ? group !== undefined && members.every(({ unchanged }) => unchanged)
        : members[0]!.unchanged;
    if (isUnchanged && source === undefined) continue;
    members.sort((a, b) => comparePaths(a.path, b.path));
    const name = group ?? `${options.groupPrefix}:${number++}`;
    const items = members.map((found, i) => ({
      ...toItem(found, sources),
      ...(source === undefined ? {} : { source }),
      ...(members.length > 1 ? { group: name } : {}),
      ...(i > 0 ? { linkTo: members[0]!.path } : {}),
    }));
    const sameNames = members.length > 1 ? group !== undefined : members[0]!.row >= 0;
    (sameNames && isDoubtful(cache, members[0]!, source) ? doubtful : certainGroups).push({
      members,
      items,
    });
  }
  return { certain, certainGroups, doubtful };
}

/** In layer order: a group comes at its last name, after the parents of all its names. */
export function orderItems(singles: readonly CaptureItem[], groups: readonly Unit[]): CaptureItem[] {
  const single = [...singles].sort((a, b) => comparePaths(a.path, b.path));
  if (groups.length === 0) return single;
  const lastName = (group: Unit) => group.items.at(-1)!.path;
  const grouped = [...groups].sort((a, b) => comparePaths(lastName(a), lastName(b)));
  const ordered: CaptureItem[] = [];
  let next = 0;
  for (const group of grouped) {
    for (; next < single.length && comparePaths(single[next]!.path, lastName(group)) < 0; next += 1)
      ordered.push(single[next]!);
    ordered.push(...group.items);
  }
  for (; next < single.length; next += 1) ordered.push(single[next]!);
  return ordered;
}

export interface Gone {
  readonly path: string;
  readonly wasDirectory: boolean;
}

/** The paths of removed rows, in path order. */
export function goneFromRows(cache: StatCache, rows: readonly number[]): Gone[] {
  if (rows.length === 0) return [];
  const removed = new Set(rows);
  const gone: Gone[] = [];
  const visit = (row: number, path: string) => {
    if (removed.has(row)) gone.push({ path, wasDirectory: cache.types[row] === TYPE_CODES.directory });
    const first = cache.firstChild[row]!;
    for (let child = first; child < first + cache.childCount[row]!; child += 1)
      visit(child, joinPath(path, nameAt(cache, child)));
  };
  visit(0, ".");
  return gone.sort((a, b) => comparePaths(a.path, b.path));
}

/** Directories of the cell's layout that are symbolic links: links are not followed, so their targets are not saved (INV-6). */
export function linkedDirectories(
  { found, unchangedRows }: Walk,
  cache: StatCache | undefined,
  names: readonly string[],
): Flaw[] {
  const reason =
    "a symbolic link instead of a directory: its target is not saved unless it is inside the cell";
  const isUnchangedLink = (name: string) => {
    const row = cache === undefined ? -1 : findRow(cache, name);
    return row >= 0 && unchangedRows[row] === 1 && cache!.types[row] === TYPE_CODES.symlink;
  };
  const links = new Set(found.filter(({ type }) => type === "symlink").map(({ path }) => path));
  return names
    .filter((name) => links.has(name) || isUnchangedLink(name))
    .map((path) => ({ path, kind: "degraded", reason }));
}

/** Whether two entries are equal, apart from the location of their bytes. */
export function sameEntry(a: Omit<Entry, "location">, b: Omit<Entry, "location">): boolean {
  return (
    a.type === b.type &&
    a.mode === b.mode &&
    a.uid === b.uid &&
    a.gid === b.gid &&
    a.mtimeSec === b.mtimeSec &&
    a.mtimeNs === b.mtimeNs &&
    a.size === b.size &&
    a.sha256 === b.sha256 &&
    a.target === b.target &&
    a.group === b.group &&
    sameList(a.xattrs, b.xattrs) &&
    sameList(a.extents, b.extents)
  );
}

function sameList(a: readonly unknown[] | undefined, b: readonly unknown[] | undefined): boolean {
  return JSON.stringify(a ?? []) === JSON.stringify(b ?? []);
}

export function toItem(found: Found, sources: ReadonlyMap<string, string>): CaptureItem {
  const source = sources.get(found.path);
  return {
    path: found.path,
    type: found.type,
    size: found.size,
    ...(source === undefined ? {} : { source }),
  };
}

/** Possibly the same content: it was there with this type and, if a file, this size. */
function isDoubtful(cache: StatCache | undefined, found: Found, source: string | undefined): boolean {
  if (cache === undefined || found.row < 0) return false;
  // The backup of a database has its own size.
  return found.type !== "file" || cache.sizes[found.row] === found.size || source !== undefined;
}

function groupSizes(cache: StatCache): Map<string, number> {
  const sizes = new Map<string, number>();
  for (const { group } of Object.values(cache.extras))
    if (group !== undefined) sizes.set(group, (sizes.get(group) ?? 0) + 1);
  return sizes;
}

/** The group's cached name, if exactly these paths formed one group. */
function knownGroup(
  cache: StatCache | undefined,
  members: readonly Found[],
  sizes: ReadonlyMap<string, number>,
): string | undefined {
  const [first] = members;
  if (cache === undefined || first === undefined || first.row < 0) return undefined;
  const group = cachedEntry(cache, first.row, first.path).entry.group;
  if (group === undefined || sizes.get(group) !== members.length) return undefined;
  return members.every(({ row }) => row >= 0 && cache.extras[row]?.group === group) ? group : undefined;
}
