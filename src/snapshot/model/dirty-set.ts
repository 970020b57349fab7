// The paths of a cell that may have changed since its newest checkpoint, as a watcher reports them. Paths are relative to the
// cell and spelled as in a listing: "worktree/src/a.ts", "." for the root. Types only.

/**
 * It may contain paths that did not change. It must contain every path that changed since the scan of the newest checkpoint
 * began, except for what no watcher sees: writes through a memory mapping, for which capture looks itself, and through another
 * name of a file, outside the cell.
 */
export interface DirtySet {
  /** Its stat, content or existence may have changed or, for a directory, its names. */
  readonly paths: ReadonlySet<string>;
  /** Anything at or below it may have changed. */
  readonly trees: ReadonlySet<string>;
  /** Look at the files that have names outside the cell, too. */
  readonly withLinked?: boolean;
}
