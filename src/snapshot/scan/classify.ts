// Decides what a checkpoint must store, by comparing the walk with the rows of the last checkpoint. Pure.
import type { CaptureItem } from "../model/capture-item.ts";
import type { Entry, Flaw } from "../model/entry.ts";
import { comparePaths } from "../model/path-bytes.ts";
import type { Found, Walk } from "./found.ts";
import type { StatRows } from "./stat-rows.ts";

/** A file, or all names of one file: stored or skipped together. */
export interface Unit {
  readonly members: readonly Found[];
  readonly items: readonly CaptureItem[];
}

export interface Suspects {
  /** New or certainly different paths with a single name; stored without hashing. */
  readonly certain: CaptureItem[];
  /** New or certainly different files with several names. */
  readonly certainGroups: Unit[];
  /** Known paths whose stat changed: hashed before they are stored. */
  readonly doubtful: Unit[];
}

export interface SortOptions {
  readonly walk: Pick<Walk, "found">;
  readonly rows: StatRows;
  /** Paths whose bytes are read from elsewhere (databases in use). */
  readonly sources: ReadonlyMap<string, string>;
  /** Paths that the checkpoint leaves out (sidecars of those databases). */
  readonly folded: ReadonlySet<string>;
  /** Prefix of the names of new hard-link groups. */
  readonly groupPrefix: string;
  /** Note which files have grown: perhaps only what was appended has to be stored. */
  readonly mayContinue?: boolean;
}

/** Smaller files are always stored whole: reading a file in parts costs more than storing it again. */
const MIN_CONTINUED_BYTES = 64 << 10;

export function sortSuspects(options: SortOptions): Suspects {
  const { walk, rows, sources, folded } = options;
  const certain: CaptureItem[] = [];
  const certainGroups: Unit[] = [];
  const doubtful: Unit[] = [];
  const shared = new Map<string, Found[]>();
  for (const found of walk.found.values()) {
    if (folded.size > 0 && folded.has(found.path)) continue;
    if (found.type === "file" && found.nlink > 1) {
      const others = shared.get(found.inode!);
      if (others === undefined) shared.set(found.inode!, [found]);
      else others.push(found);
      continue;
    }
    if (found.unchanged && (sources.size === 0 || !sources.has(found.path))) continue;
    const item = toItem(found, sources);
    if (isDoubtful(found, item.source)) doubtful.push({ members: [found], items: [item] });
    else certain.push(options.mayContinue ? { ...item, ...grownFrom(options, found, item) } : item);
  }
  let number = 0;
  for (const members of shared.values()) {
    const group = knownGroup(rows, members);
    // A database's log is next to one of its names, but its transactions belong to all of them.
    const source = members.map(({ path }) => sources.get(path)).find((copy) => copy !== undefined);
    const isUnchanged =
      members.length > 1
        ? group !== undefined && members.every(({ unchanged }) => unchanged)
        : members[0]!.unchanged;
    if (isUnchanged && source === undefined) continue;
    members.sort((a, b) => comparePaths(a.path, b.path));
    const name = group ?? `${options.groupPrefix}:${number++}`;
    const items = members.map(
      (found, i): CaptureItem => ({
        ...toItem(found, sources),
        ...(source === undefined ? {} : { source }),
        ...(members.length > 1 ? { group: name } : {}),
        ...(i > 0 ? { linkTo: members[0]!.path } : {}),
      }),
    );
    const sameNames = members.length > 1 ? group !== undefined : members[0]!.row !== undefined;
    if (sameNames) items[0] = { ...items[0]!, ...grownFrom(options, members[0]!, items[0]!) };
    (sameNames && isDoubtful(members[0]!, source) ? doubtful : certainGroups).push({
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

/** Directories of the cell's layout that are symbolic links: links are not followed, so their targets are not saved (INV-6). */
export function linkedDirectories(rows: StatRows, names: readonly string[]): Flaw[] {
  const reason =
    "a symbolic link instead of a directory: its target is not saved unless it is inside the cell";
  return names
    .filter((name) => rows.stat(name)?.type === "symlink")
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
function isDoubtful({ type, row, size }: Found, source: string | undefined): boolean {
  if (row === undefined) return false;
  // The backup of a database has its own size.
  return type !== "file" || row.size === size || source !== undefined;
}

/** What the last checkpoint has of a file that is longer now. */
function grownFrom(
  { rows, mayContinue }: SortOptions,
  { path, row, type, size }: Found,
  { source }: CaptureItem,
): Pick<CaptureItem, "grownFrom"> {
  if (!mayContinue || row === undefined || type !== "file" || source !== undefined) return {};
  if (row.size < MIN_CONTINUED_BYTES || row.size >= size) return {};
  const entry = rows.entry(path);
  if (entry === undefined || entry.extra?.extents !== undefined) return {};
  return { grownFrom: { size: entry.size, sha256: entry.sha256 } };
}

/** The group's name in the last checkpoint, if exactly these paths formed it. */
function knownGroup(rows: StatRows, members: readonly Found[]): string | undefined {
  const groupOf = ({ path, row }: Found) => (row === undefined ? undefined : rows.entry(path)?.extra?.group);
  const group = groupOf(members[0]!);
  if (group === undefined || rows.groupSize(group) !== members.length) return undefined;
  return members.every((found) => groupOf(found) === group) ? group : undefined;
}
