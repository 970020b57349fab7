// What changed in a tree since the set was last taken: paths, or *unknown*, which means that everything may have changed. Bounded:
// a set that would cost more than a walk is useless. Unknown stays unknown until the set is taken. Pure.

/** Plain data: it is sent between threads. Paths are spelled as in src/snapshot/model/path-bytes.ts. */
export interface TakenPaths {
  /** Why it is unknown; null: `paths` and `trees` are complete. */
  readonly unknown: string | null;
  /** Their content, stat or existence may have changed; of a directory, also its names. */
  readonly paths: readonly string[];
  /** Anything at or below may have changed. */
  readonly trees: readonly string[];
}

/** About 1 MB of text. Statting so many paths takes as long as walking a cell of moderate size. */
export const MAX_PATHS = 10_000;

export function unknownPaths(why: string): TakenPaths {
  return { unknown: why, paths: [], trees: [] };
}

export class DirtyPaths {
  private readonly paths = new Set<string>();
  private readonly trees = new Set<string>();
  private unknown: string | null;

  constructor(why: string) {
    this.unknown = why;
  }

  addPath(path: string): void {
    if (this.unknown === null) this.add(this.paths, path);
  }

  addTree(path: string): void {
    if (this.unknown === null) this.add(this.trees, path);
  }

  /** The first reason is kept. */
  setUnknown(why: string): void {
    this.unknown ??= why;
    this.paths.clear();
    this.trees.clear();
  }

  /** Everything since the last call; later changes are for the next one. */
  take(): TakenPaths {
    const taken = { unknown: this.unknown, paths: [...this.paths], trees: [...this.trees] };
    this.paths.clear();
    this.trees.clear();
    this.unknown = null;
    return taken;
  }

  /** Adds a set back that could not be saved. */
  putBack({ unknown, paths, trees }: TakenPaths): void {
    if (unknown !== null) this.setUnknown(unknown);
    for (const path of paths) this.addPath(path);
    for (const path of trees) this.addTree(path);
  }

  private add(to: Set<string>, path: string): void {
    to.add(path);
    if (this.paths.size + this.trees.size > MAX_PATHS)
      this.setUnknown(`more than ${MAX_PATHS} paths changed`);
  }
}
