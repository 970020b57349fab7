// Takes the stat of paths, compares it with their rows and collects what a scan found. Opens nothing. A path may be inspected
// twice: the later result counts.
import { constants, lstatSync } from "node:fs";
import { refuseExhaustion, systemErrorCode } from "../../platform/errors.ts";
import { createStat, type FileStat, findStat } from "../../platform/file-stat.ts";
import { diskPath, rootOf, type TreeRoot } from "../model/cell-tree.ts";
import type { EntryType, Flaw } from "../model/entry.ts";
import type { OpenTree } from "../model/open-tree.ts";
import { joinPath, systemPath } from "../model/path-bytes.ts";
import { isSidecar } from "../model/sqlite-files.ts";
import type { Found, Walk } from "./found.ts";
import { baseName, isUnchanged, type StatRow } from "./stat-row.ts";
import type { StatRows } from "./stat-rows.ts";

const { S_IFMT, S_IFREG, S_IFDIR, S_IFLNK, S_IFIFO, S_IFSOCK, S_IFCHR, S_IFBLK } = constants;
const TYPE_OF_MODE = new Map<number, EntryType>([
  [S_IFREG, "file"],
  [S_IFDIR, "directory"],
  [S_IFLNK, "symlink"],
  [S_IFIFO, "fifo"],
]);
const SKIPPED_TYPES = new Map([
  [S_IFSOCK, "a socket"],
  [S_IFCHR, "a character device"],
  [S_IFBLK, "a block device"],
]);
/** A parent is gone, or is a link or a file. */
const GONE_CODES = new Set(["ENOENT", "ENOTDIR", "ELOOP"]);

export interface InspectOptions {
  readonly root: TreeRoot;
  readonly rows: StatRows;
  /** Inodes of files whose stat proves nothing. */
  readonly mapped: ReadonlySet<number>;
}

export class Inspector implements Walk {
  readonly found = new Map<string, Found>();
  readonly gone = new Map<string, boolean>();
  readonly read = new Map<string, boolean>();
  readonly flaws = new Map<string, Flaw>();
  readonly deferred = new Set<string>();
  /** Set where parents have not just been seen: then none of them may be a link. */
  tree: OpenTree | undefined;
  private readonly options: InspectOptions;
  /** Reused: one path is inspected at a time. */
  private readonly current = createStat();

  constructor(options: InspectOptions) {
    this.options = options;
  }

  /**
   * Undefined when the path is gone or cannot be captured. What is found is only kept by `add`. With a `tree`, a name is looked up
   * in its open directory, which is faster; if that was moved, packing or the search for moved paths finds out, because the
   * walk has read it. A directory that is not read must be looked up by its path.
   */
  inspect(path: string, row: StatRow | undefined, tree = this.tree): Found | undefined {
    if (this.gone.size > 0) this.gone.delete(path);
    if (this.flaws.size > 0) this.flaws.delete(path);
    const stat = this.stat(path, tree);
    const type = stat === undefined ? undefined : TYPE_OF_MODE.get(stat.mode & S_IFMT);
    if (stat === undefined || type === undefined) {
      if (stat !== undefined) this.skip(path, SKIPPED_TYPES.get(stat.mode & S_IFMT) ?? "of an unknown type");
      if (row !== undefined) this.forget(path, row);
      return undefined;
    }
    const isSameType = row?.type === type;
    if (row !== undefined && !isSameType) this.forget(path, row);
    return {
      path,
      type,
      row: isSameType ? row : undefined,
      unchanged: isSameType && isUnchanged(row, stat) && !this.isMapped(row),
      size: stat.size,
      nlink: stat.nlink,
      ...(type === "file" && stat.nlink > 1 ? { inode: this.exactInode(path, stat) } : {}),
      ...(type === "directory" && isSameType && isOtherDirectory(row, stat) ? { isOther: true } : {}),
    };
  }

  add(seen: Found): void {
    if (!seen.unchanged || isSpecial(seen)) this.found.set(seen.path, seen);
    else if (this.found.size > 0) this.found.delete(seen.path);
  }

  skip(path: string, reason: string): void {
    this.flaws.set(path, { path, kind: "skipped", reason });
  }

  /** Marks a row and every row below it as gone. */
  forget(path: string, row: StatRow): void {
    this.gone.set(path, row.type === "directory");
    if (this.found.size > 0) this.found.delete(path);
    if (row.type !== "directory") return;
    for (const child of this.options.rows.children(path)) this.forget(joinPath(path, child.name), child);
  }

  private isMapped({ type, ino }: StatRow): boolean {
    return this.options.mapped.size > 0 && type === "file" && this.options.mapped.has(ino);
  }

  private stat(path: string, tree: OpenTree | undefined): FileStat | undefined {
    const { root } = this.options;
    try {
      return tree === undefined ? findStat(this.place(path), this.current) : tree.stat(path, this.current);
    } catch (error) {
      const code = systemErrorCode(error);
      refuseExhaustion(error, `reading the stat of ${path} in ${rootOf(root)}`, rootOf(root));
      if (code === undefined) throw error;
      if (!GONE_CODES.has(code)) this.skip(path, `its stat cannot be read (${code})`);
      return undefined;
    }
  }

  /** Inodes above 2^53 are not exact as doubles, and two files would be taken for one. */
  private exactInode(path: string, stat: FileStat): string {
    if (Number.isSafeInteger(stat.ino) && Number.isSafeInteger(stat.dev)) return `${stat.dev}:${stat.ino}`;
    const exact = lstatSync(this.place(path), { bigint: true, throwIfNoEntry: false });
    return exact === undefined ? `${stat.dev}:${path}` : `${exact.dev}:${exact.ino}`;
  }

  private place(path: string): string | Buffer {
    return systemPath(this.tree?.at(path) ?? diskPath(this.options.root, path));
  }
}

function isOtherDirectory(row: StatRow, stat: FileStat): boolean {
  return row.ino !== stat.ino || row.mode !== (stat.mode & 0o7777);
}

/** An unchanged stat is not enough to tell that nothing has to be done. */
function isSpecial({ type, nlink, path }: Found): boolean {
  return type === "fifo" || (type === "file" && (nlink !== 1 || isSidecar(baseName(path))));
}

/** Whether a checkpoint can hold a path of this type. */
export function isCapturable({ mode }: Pick<FileStat, "mode">): boolean {
  return TYPE_OF_MODE.has(mode & S_IFMT);
}
