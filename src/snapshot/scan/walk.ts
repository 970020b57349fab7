// Scans a cell and compares it with the rows of the last checkpoint, in one of two ways. A *walk* takes the stat of every path;
// a directory whose own stat is unchanged is not read, because its names are known, unless some were left out of the last
// checkpoint. A *look* does the same only for paths that may have changed; the others count as unchanged. Nothing but
// directories is opened.
import { refuseExhaustion, systemErrorCode } from "../../platform/errors.ts";
import { rootOf, type TreeRoot } from "../model/cell-tree.ts";
import type { DirtySet } from "../model/dirty-set.ts";
import { OpenTree } from "../model/open-tree.ts";
import { joinPath } from "../model/path-bytes.ts";
import type { Matcher } from "../path-patterns.ts";
import type { Walk } from "./found.ts";
import { Inspector } from "./inspect.ts";
import { listTreeNames } from "./list-names.ts";
import { type Candidates, type Directory, lookAt } from "./look.ts";
import type { StatRow } from "./stat-row.ts";
import type { StatRows } from "./stat-rows.ts";

export interface WalkOptions {
  readonly root: TreeRoot;
  readonly rows: StatRows;
  readonly isExcluded: Matcher;
  /** Digest of the exclude patterns: if the rows were written under the same ones, none of them is excluded. */
  readonly rules?: string;
  /** A directory to leave for a later `resume`: git writes into its own directory while the rest is scanned. */
  readonly defer?: string | undefined;
  /** Inodes of files whose stat proves nothing. */
  readonly mapped?: ReadonlySet<number>;
}

export interface Walker {
  /** Everything found so far. */
  readonly result: Walk;
  /** Walks the whole cell, the deferred directory excepted. */
  walk(): Walk;
  /** Looks only at what may have changed, and at what depends on it. The rows must have the same exclude patterns. */
  look(dirty: DirtySet): Walk;
  /** Scans the deferred directory and adds to the same result. `written`: what git has written since the first scan. */
  resume(written: readonly string[]): Walk;
  /** Moves unchanged paths to `found`: their content may have changed although their stat did not. */
  reveal(paths: Iterable<string>): void;
}

export function createWalker(options: WalkOptions): Walker {
  return new CellWalker(options);
}

/** How a directory with a row is read: `all` names are inspected, or only those without a row. */
type Depth = "all" | "new";

class CellWalker implements Walker {
  readonly result: Inspector;
  private readonly root: TreeRoot;
  private readonly rows: StatRows;
  private readonly isExcluded: Matcher;
  private readonly isSameRules: boolean;
  private readonly defer: string | undefined;
  /** Set by `look`: the candidates at or below the deferred directory. */
  private later: Candidates | undefined;

  constructor({ root, rows, isExcluded, rules, defer, mapped = new Set() }: WalkOptions) {
    this.root = root;
    this.rows = rows;
    this.isExcluded = isExcluded;
    this.isSameRules = rules !== undefined && rules === rows.rules;
    this.defer = defer;
    this.result = new Inspector({ root, rows, mapped });
  }

  walk(): Walk {
    const top = this.result.inspect(".", this.rows.stat("."));
    if (top === undefined) return this.result;
    this.result.add(top);
    using tree = new OpenTree(this.root);
    this.descend(top, tree, this.defer);
    return this.result;
  }

  look({ paths, trees }: DirtySet): Walk {
    const { defer } = this;
    const isLater = (path: string) => defer !== undefined && (path === defer || path.startsWith(`${defer}/`));
    const select = (isWanted: (path: string) => boolean): Candidates => ({
      paths: new Set([...paths].filter(isWanted)),
      trees: new Set([...trees].filter(isWanted)),
    });
    this.later = select(isLater);
    if (defer !== undefined) this.result.deferred.add(defer);
    this.lookAt(
      select((path) => !isLater(path)),
      defer,
    );
    return this.result;
  }

  resume(written: readonly string[]): Walk {
    const { result, defer, later } = this;
    if (defer === undefined || !result.deferred.has(defer)) return result;
    if (later !== undefined) {
      this.lookAt({ paths: new Set([...later.paths, ...written]), trees: later.trees }, undefined);
      return result;
    }
    const now = result.inspect(defer, this.rows.stat(defer));
    if (now?.type === "directory") {
      result.add(now);
      using tree = new OpenTree(this.root);
      this.descend(now, tree, undefined);
    } else {
      // Gone or no longer a directory: packing it reports that, and the names it had are not trusted.
      const vanished = { type: "directory", row: undefined, unchanged: false, size: 0, nlink: 1 } as const;
      result.found.set(defer, { path: defer, ...vanished });
      result.read.set(defer, false);
    }
    return result;
  }

  reveal(paths: Iterable<string>): void {
    const { found, gone } = this.result;
    for (const path of paths) {
      const row = this.rows.stat(path);
      if (row === undefined || found.has(path) || gone.has(path)) continue;
      found.set(path, { path, type: row.type, row, unchanged: true, size: row.size, nlink: 1 });
    }
  }

  private lookAt(candidates: Candidates, skip: string | undefined): void {
    const { rows, result, isExcluded } = this;
    using tree = new OpenTree(this.root);
    result.tree = tree;
    lookAt(candidates, {
      rows,
      result,
      isExcluded,
      descend: (directory) => this.descend(directory, tree, skip),
      readNew: (directory) => {
        for (const each of this.readNames(directory, tree, "new")) this.descend(each, tree, skip);
      },
    });
    result.tree = undefined;
  }

  /** Walks everything below a directory, except in `skip`. */
  private descend(top: Directory, tree: OpenTree, skip: string | undefined): void {
    const pending = [top];
    for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
      const { path, row, unchanged } = directory;
      if (path === skip) {
        this.result.deferred.add(path);
        this.later?.trees.add(path);
        continue;
      }
      // The names in the root do not show whether there is a worktree elsewhere.
      const isSplit = path === "." && typeof this.root !== "string";
      const isKnown = unchanged && !row!.isPartial && !isSplit;
      const below = isKnown ? this.checkKnownNames(path) : this.readNames(directory, tree, "all");
      for (let i = below.length - 1; i >= 0; i -= 1) pending.push(below[i]!);
    }
  }

  /** The directory is unchanged, so its names are those of its rows: no readdir. Returns its subdirectories. */
  private checkKnownNames(directory: string): Directory[] {
    const { result, rows, isSameRules, isExcluded } = this;
    const below: Directory[] = [];
    for (const row of rows.children(directory)) {
      const path = joinPath(directory, row.name);
      if (!isSameRules && isExcluded(path, row.name)) result.forget(path, row);
      else this.check(path, row, below);
    }
    return below;
  }

  /** Reads the directory's names and compares them with its rows. Returns the subdirectories to descend into. */
  private readNames({ path: directory, row }: Directory, tree: OpenTree, depth: Depth): Directory[] {
    const { result, isExcluded } = this;
    const known = new Map<string, StatRow>();
    if (row !== undefined) for (const child of this.rows.children(directory)) known.set(child.name, child);
    const names = this.listNames(directory, tree);
    let isComplete = names !== undefined;
    const below: Directory[] = [];
    for (const name of names ?? []) {
      const path = joinPath(directory, name);
      const child = known.get(name);
      if (isExcluded(path, name)) {
        isComplete = false;
        continue;
      }
      known.delete(name);
      if (depth === "new" && child !== undefined) continue;
      if (!this.check(path, child, below, tree)) isComplete = false;
    }
    for (const [name, child] of known) result.forget(joinPath(directory, name), child);
    result.read.set(directory, isComplete);
    return below;
  }

  /** False when the path is not there or cannot be captured. */
  private check(path: string, row: StatRow | undefined, below: Directory[], tree?: OpenTree): boolean {
    const seen = this.result.inspect(path, row, tree);
    if (seen === undefined) return false;
    this.result.add(seen);
    if (seen.type === "directory") below.push(seen);
    return true;
  }

  /** Undefined when the directory cannot be read. */
  private listNames(path: string, tree: OpenTree): string[] | undefined {
    try {
      return listTreeNames(this.root, tree, path);
    } catch (error) {
      const code = systemErrorCode(error);
      refuseExhaustion(error, `reading the directory ${path} in ${rootOf(this.root)}`, rootOf(this.root));
      if (code !== "ENOENT")
        this.result.skip(path, `the directory and its contents cannot be read (${code})`);
      return undefined;
    }
  }
}
