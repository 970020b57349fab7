// The paths of a cell that may have changed since its newest checkpoint, as a watcher reports them. Paths are relative to the
// cell and spelled as in a listing: "worktree/src/a.ts", "." for the root. Types only.

/**
 * May always name more than what changed. Whoever makes it promises that it names everything that changed since the scan of
 * the newest checkpoint began, except what no watcher can see: writes to files that are mapped into memory, which the
 * capture finds itself.
 */
export interface DirtySet {
  /** Its stat, content or existence may have changed or, for a directory, its names. */
  readonly paths: ReadonlySet<string>;
  /** Anything at or below it may have changed. */
  readonly trees: ReadonlySet<string>;
}
