// What the house rules allow one file, and why. An entry that nothing needs any more fails the test.

export type Rule =
  | "clock"
  | "randomness"
  | "environment"
  | "console"
  | "durable-write"
  | "imports"
  | "header"
  | "length"
  | "name"
  | "test"
  | "path"
  | "lock-file";

export interface Allowance {
  readonly rule: Rule;
  readonly path: string;
  readonly reason: string;
}

const RESTORE = "writes what a restore staged; restore-sync makes it durable before the journal says so";

export const ALLOWED: readonly Allowance[] = [
  { rule: "clock", path: "src/platform/clock.ts", reason: "is the clock" },
  { rule: "randomness", path: "src/platform/ids.ts", reason: "is the source of ids" },
  { rule: "environment", path: "src/cli/main.ts", reason: "reads the environment once and hands it on" },
  {
    rule: "environment",
    path: "src/testing/arm-crash-point.ts",
    reason: "is loaded before anything can be handed in",
  },

  { rule: "durable-write", path: "src/cli/terminal.ts", reason: "writes to the terminal, not to a disk" },
  { rule: "durable-write", path: "src/cli/examine.ts", reason: "probes the file system with a scratch file" },
  {
    rule: "durable-write",
    path: "src/registry/rebuild.ts",
    reason: "moves a damaged registry aside; it is a cache",
  },
  {
    rule: "durable-write",
    path: "src/flow/once-record.ts",
    reason: "a trace of a process, true within one boot only",
  },
  {
    rule: "durable-write",
    path: "src/snapshot/stat-cache.ts",
    reason: "a cache: lost, everything is hashed again",
  },
  {
    rule: "durable-write",
    path: "src/snapshot/git/commit.ts",
    reason: "a private index and its cache; git syncs objects",
  },
  {
    rule: "durable-write",
    path: "src/snapshot/git/private-index.ts",
    reason: "a copy of git's index; lost, git hashes again",
  },
  { rule: "durable-write", path: "src/snapshot/restore-finish.ts", reason: RESTORE },
  { rule: "durable-write", path: "src/snapshot/restore-hands.ts", reason: RESTORE },
  {
    rule: "durable-write",
    path: "src/snapshot/restore-journal.ts",
    reason: "sets a damaged journal aside for a look",
  },
  { rule: "durable-write", path: "src/snapshot/restore-make.ts", reason: RESTORE },
  { rule: "durable-write", path: "src/snapshot/restore-stage.ts", reason: RESTORE },
  { rule: "durable-write", path: "src/snapshot/restore-steps.ts", reason: RESTORE },
  { rule: "durable-write", path: "src/snapshot/restore-sync.ts", reason: "is that sync" },
  { rule: "durable-write", path: "src/snapshot/restore-to.ts", reason: RESTORE },

  {
    rule: "durable-write",
    path: "src/snapshot/restore.ts",
    reason: "puts a rebuilt cell in place, then syncs",
  },
  {
    rule: "durable-write",
    path: "src/snapshot/import.ts",
    reason: "puts a synced cell in place, then syncs",
  },
  { rule: "durable-write", path: "src/snapshot/fork.ts", reason: "puts a synced cell in place, then syncs" },
  {
    rule: "durable-write",
    path: "src/snapshot/unpack.ts",
    reason: "fills a private directory that its caller syncs",
  },

  {
    rule: "environment",
    path: "src/pit/keeper-launch.ts",
    reason: "becomes the keeper, with the environment that its starter gave it",
  },
  { rule: "durable-write", path: "src/pit/bell.ts", reason: "a bell: lost, the pit looks by itself" },
  {
    rule: "durable-write",
    path: "src/pit/rotate-log.ts",
    reason: "bounds what an agent prints; nobody promised it",
  },

  { rule: "imports", path: "src/snapshot/entry.ts", reason: "a checkpoint says where flows and runs stood" },
  {
    rule: "imports",
    path: "src/snapshot/positions.ts",
    reason: "a checkpoint says where flows and runs stood",
  },
  {
    rule: "imports",
    path: "src/snapshot/restore-moves.ts",
    reason: "a restore says how far flows and runs move",
  },
  { rule: "imports", path: "src/registry/rebuild.ts", reason: "the registry is rebuilt from the vaults" },
  { rule: "imports", path: "src/registry/checkpoints.ts", reason: "stores what a checkpoint says of itself" },
  {
    rule: "imports",
    path: "src/testing/run-store-bench.ts",
    reason: "what the suite of run stores works with",
  },
];
