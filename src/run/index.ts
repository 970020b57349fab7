// `lazarus/run`: an agent loop that survives its process. Without a store, runs are bounded and kept in memory.

export type { PostgresOptions } from "../platform/postgres/options.ts";
export type { CheckedRun } from "./engine/check.ts";
export {
  type ContinueParameters,
  DurableAgent,
  type DurableOptions,
  type DurableStore,
  durable,
  type RunReference,
  type ScheduledRuns,
  type StreamReference,
} from "./engine/durable-agent.ts";
export { type CallOptions, durableCall } from "./engine/durable-call.ts";
export { type Reconciliation, type RunningEffect, UnknownOutcomeError } from "./engine/ledger.ts";
export type { RunParameters } from "./engine/open-run.ts";
export type { RecoveredRun } from "./engine/recover.ts";
export type { RunSchedule, TickReport } from "./engine/schedule.ts";
export {
  currentEffect,
  type Message,
  RunSuspended,
  type StepOptions,
  sleep,
  step,
  waitFor,
} from "./engine/scope.ts";
export type { Approval, RunOutcome } from "./engine/session.ts";
export type { EffectRule } from "./engine/tools.ts";
export type * from "./journal/journal.ts";
export type { QueueSettings, RateLimit } from "./journal/queue.ts";
export {
  type Agent,
  type DurableTool,
  durableTool,
  type ModelSettings,
  type Phase,
  type PhaseContext,
  type RunInput,
  type ToolContext,
  type ToolSet,
} from "./kernel/agent.ts";
export { createExecutor, type Executor } from "./kernel/executor.ts";
export type {
  CheckpointOptions,
  ExecutorDefaults,
  ExecutorOptions,
  RunOptions,
  RunResult,
} from "./kernel/options.ts";
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
} from "./kernel/ports.ts";
export { type Recovered, type RecoveryOptions, recoverInterrupted, resumeRun } from "./kernel/recover.ts";
export type { RunLog } from "./log/run-log.ts";
export { RunStopped, ShutdownError, type StopKind } from "./model/stop.ts";
export type * from "./model/types.ts";
export { type ApprovalAnswer, approveRun } from "./operations/approve.ts";
export { type CancelledRun, cancelRun } from "./operations/cancel.ts";
export { type Fork, type ForkOptions, forkRun, rerunRun } from "./operations/fork.ts";
export { listRuns, type RunSummary } from "./operations/list.ts";
export {
  type DeleteOptions,
  deleteRun,
  type PruneReport,
  pruneRuns,
  type RetentionPolicy,
} from "./operations/prune.ts";
export { listQueues, type QueueView, setQueue } from "./operations/queue.ts";
export { retryRun } from "./operations/retry.ts";
export { type SendOptions, sendToRun } from "./operations/send.ts";
export { type RunView, showRun, type WaitView } from "./operations/show.ts";
export { wakeRun } from "./operations/wake.ts";
export { CELL_RUNS, createMemoryRunStore, openCellRunStore, openSqliteRunStore } from "./store/open.ts";
export { openPostgresRunStore } from "./store/open-postgres.ts";
export {
  createRunStore,
  type EffectResolution,
  type ListQuery,
  type RunStore,
  type RunStoreOptions,
} from "./store/store.ts";
