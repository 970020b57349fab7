// lazarus/run: an agent loop that survives its process. Every part is optional; zero ports give a bounded run in memory.
export {
  type Agent,
  type DurableTool,
  durableTool,
  type Phase,
  type PhaseContext,
  type Reconciliation,
  type RunInput,
  type ToolContext,
  type ToolSet,
  UnknownOutcomeError,
} from "./agent.ts";
export type * from "./backend.ts";
export { type CheckpointerOptions, createCheckpointer, type RunCheckpointer } from "./checkpointer.ts";
export {
  createExecutor,
  type Executor,
  type ExecutorDefaults,
  type ExecutorOptions,
  type RunOptions,
  type RunResult,
} from "./executor.ts";
export { CELL_RUNS, createMemoryRunStore, openCellRunStore, openSqliteRunStore } from "./open.ts";
export type {
  AuditPort,
  BudgetPort,
  CheckpointerFactory,
  ClaimedRun,
  RunControls,
  RunEvent,
  RunPorts,
  Watch,
  Watchdog,
} from "./ports.ts";
export { type Recovered, type RecoveryOptions, recoverInterrupted, resumeRun } from "./recover.ts";
export type { RetentionPolicy } from "./retention.ts";
export { createRunStore, type RunStoreOptions } from "./run-store.ts";
export type { RunState } from "./state.ts";
export { RunStopped, ShutdownError, type StopKind } from "./stop.ts";
export type {
  BeginReceipt,
  EffectResolution,
  InterruptedRun,
  ListQuery,
  PruneReport,
  RunChange,
  RunClosing,
  RunStore,
  SaveReceipt,
} from "./store.ts";
export { openPostgresRunStore } from "./stores/postgres.ts";
export type { PostgresOptions } from "./stores/postgres-pool.ts";
export type * from "./types.ts";
export { diagnoseWrite } from "./verdict.ts";
