// The paths of a cell that may have changed since its newest checkpoint, as a watcher reports them. Paths are relative to the
// cell and spelled as in a listing: "worktree/src/a.ts", "." for the root. Types only.

/**
 * It may contain paths that did not change. It must contain every path that changed since the scan of the newest checkpoint
 * began, except for writes through a memory mapping: no watcher can see those, so capture looks for mapped files itself.
 */
export interface DirtySet {
  /** Its stat, content or existence may have changed or, for a directory, its names. */
  readonly paths: ReadonlySet<string>;
  /** Anything at or below it may have changed. */
  readonly trees: ReadonlySet<string>;
}
