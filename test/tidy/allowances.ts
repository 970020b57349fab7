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
  {
    rule: "durable-write",
    path: "src/cli/commands/setup/examine.ts",
    reason: "probes the file system with a scratch file",
  },
  {
    rule: "durable-write",
    path: "src/snapshot/operations/rebuild-registry.ts",
    reason: "moves a damaged registry aside; it is a cache",
  },
  {
    rule: "durable-write",
    path: "src/flow/once/record.ts",
    reason: "a trace of a process, true within one boot only",
  },
  {
    rule: "durable-write",
    path: "src/snapshot/scan/stat-cache.ts",
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
  { rule: "durable-write", path: "src/snapshot/restore/roll-forward.ts", reason: RESTORE },
  { rule: "durable-write", path: "src/snapshot/restore/cell-access.ts", reason: RESTORE },
  {
    rule: "durable-write",
    path: "src/snapshot/restore/journal.ts",
    reason: "sets a damaged journal aside for a look",
  },
  { rule: "durable-write", path: "src/snapshot/restore/make-path.ts", reason: RESTORE },
  { rule: "durable-write", path: "src/snapshot/restore/stage.ts", reason: RESTORE },
  { rule: "durable-write", path: "src/snapshot/restore/steps.ts", reason: RESTORE },
  { rule: "durable-write", path: "src/snapshot/restore/sync.ts", reason: "is that sync" },
  { rule: "durable-write", path: "src/snapshot/operations/restore-into.ts", reason: RESTORE },

  {
    rule: "durable-write",
    path: "src/snapshot/operations/restore.ts",
    reason: "puts a rebuilt cell in place, then syncs",
  },
  {
    rule: "durable-write",
    path: "src/snapshot/operations/import.ts",
    reason: "puts a synced cell in place, then syncs",
  },
  {
    rule: "durable-write",
    path: "src/snapshot/operations/fork.ts",
    reason: "puts a synced cell in place, then syncs",
  },
  {
    rule: "durable-write",
    path: "src/snapshot/archive/unpack.ts",
    reason: "fills a private directory that its caller syncs",
  },

  {
    rule: "environment",
    path: "src/pit/start/keeper-launch.ts",
    reason: "becomes the keeper, with the environment that its starter gave it",
  },
  {
    rule: "durable-write",
    path: "src/pit/supervise/wake-file.ts",
    reason: "a bell: lost, the pit looks by itself",
  },
  {
    rule: "durable-write",
    path: "src/pit/supervise/rotate-log.ts",
    reason: "bounds what an agent prints; nobody promised it",
  },

  { rule: "imports", path: "src/registry/checkpoints.ts", reason: "stores what a checkpoint says of itself" },
  {
    rule: "imports",
    path: "src/testing/run-store-bench.ts",
    reason: "what the suite of run stores works with",
  },
  { rule: "imports", path: "src/alerts/loop.ts", reason: "takes the pit's context; moves out of pit next" },
  { rule: "imports", path: "src/service/plan.ts", reason: "shares install steps with flow; merges next" },
];
