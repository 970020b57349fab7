// `lazarus/run`: an agent loop that survives its process. Without a store, runs are bounded and kept in memory.

export type { PostgresOptions } from "../platform/postgres.ts";
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
export type { RunningEffect } from "./engine/ledger.ts";
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
export type { QueueSettings, RateLimit } from "./journal/queue.ts";
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
} from "./kernel/agent.ts";
export { type CheckpointerOptions, createCheckpointer } from "./kernel/checkpointer.ts";
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
  RunCheckpointer,
  RunControls,
  RunEvent,
  RunPorts,
  Watch,
  Watchdog,
} from "./kernel/ports.ts";
export { type Recovered, type RecoveryOptions, recoverInterrupted, resumeRun } from "./kernel/recover.ts";
export type { RunState } from "./kernel/state.ts";
export { RunStopped, ShutdownError, type StopKind } from "./model/stop.ts";
export type * from "./model/types.ts";
export { type ApprovalAnswer, approveRun } from "./operations/approve.ts";
export { type CancelledRun, cancelRun } from "./operations/cancel.ts";
export { type Fork, type ForkOptions, forkRun, rerunRun } from "./operations/fork.ts";
export { listRuns, type RunSummary } from "./operations/list.ts";
export { deleteRun, pruneRuns } from "./operations/prune.ts";
export { listQueues, type QueueView, setQueue } from "./operations/queue.ts";
export { retryRun } from "./operations/retry.ts";
export { type SendOptions, sendToRun } from "./operations/send.ts";
export { type RunView, showRun, type WaitView } from "./operations/show.ts";
export { wakeRun } from "./operations/wake.ts";
export type * from "./store/backend.ts";
export type { RetentionPolicy } from "./store/retention.ts";
export { createRunStore, type RunStoreOptions } from "./store/run-store.ts";
export type {
  BeginReceipt,
  EffectResolution,
  ListQuery,
  RunChange,
  RunClosing,
  RunStore,
  SaveReceipt,
} from "./store/store.ts";
export { diagnoseWrite } from "./store/verdict.ts";
export { CELL_RUNS, createMemoryRunStore, openCellRunStore, openSqliteRunStore } from "./stores/open.ts";
export { openPostgresRunStore } from "./stores/postgres.ts";
