// Recovery at boot: claims every run of the executor's store that can be continued, under a lease, and resumes it on the same
// record, with no new input. A run that another process claims first is skipped; one that cannot be resumed here is
// reported with its reason and left unchanged.
import { LazarusError } from "../../platform/errors.ts";
import { segmentsOf } from "../engine/session.ts";
import { isEnded } from "../journal/head.ts";
import { DEFAULT_DEATHS } from "../log/lease.ts";
import { listInterrupted } from "../log/read.ts";
import { claimRun, findHead, type LoadedRun, loadRun, type RunLog, requireHead } from "../log/run-log.ts";
import { thrownText } from "../model/thrown.ts";
import type { RunHead } from "../model/types.ts";
import type { RunStore } from "../store/store.ts";
import type { Agent } from "./agent.ts";
import type { Executor } from "./executor.ts";
import type { RunResult } from "./options.ts";

/** Which agents this host has, and how many runs it resumes concurrently. */
export interface RecoveryOptions {
  /** The agent of a run; undefined leaves the run for another process. */
  agentFor(head: RunHead): Agent | undefined | Promise<Agent | undefined>;
  /** How many runs are resumed at a time, default 16. */
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
  /** Runs that were last active longer ago than this are skipped. Default: no limit. */
  readonly maxAgeMs?: number;
  /**
   * How many times in a row a run may be resumed without completing a step, default 5. A run that kills its process
   * every time would otherwise kill this one too, with all its other runs. `lazarus runs retry` resets the count.
   */
  readonly maxDeaths?: number;
}

/** The result for one interrupted run. */
export type Recovered =
  | { readonly runId: string; readonly how: "resumed"; readonly result: RunResult }
  /** Another process owns it. */
  | { readonly runId: string; readonly how: "taken" }
  | { readonly runId: string; readonly how: "skipped"; readonly reason: string };

const DEFAULT_CONCURRENCY = 16;

/** Resumes every run of the executor's store that can be continued, and waits for them. A failing run does not make it throw. */
export async function recoverInterrupted(executor: Executor, options: RecoveryOptions): Promise<Recovered[]> {
  const interrupted = await listInterrupted(storeOf(executor).log);
  const results: Recovered[] = [];
  let next = 0;
  const worker = async () => {
    while (next < interrupted.length && !options.signal?.aborted) {
      const { head, blocked } = interrupted[next++]!;
      results.push(
        blocked === null
          ? await recoverOne(executor, options, head)
          : { runId: head.runId, how: "skipped", reason: blocked },
      );
    }
  };
  const { concurrency = DEFAULT_CONCURRENCY } = options;
  // NaN and values below 1 mean one at a time, not none.
  const workers = Math.min(concurrency >= 1 ? Math.floor(concurrency) : 1, interrupted.length);
  await Promise.all(Array.from({ length: workers }, worker));
  return results;
}

async function recoverOne(executor: Executor, options: RecoveryOptions, head: RunHead): Promise<Recovered> {
  const { runId } = head;
  const skip = (reason: string): Recovered => ({ runId, how: "skipped", reason });
  const { maxDeaths = DEFAULT_DEATHS } = options;
  if (head.deaths >= maxDeaths) {
    return skip(
      `it was resumed ${head.deaths} times without getting past step ${head.step}: its process dies there; ` +
        `when that is fixed: lazarus runs retry ${runId}`,
    );
  }
  const ageMs = executor.machine.clock.nowMs() - head.updatedAtMs;
  if (options.maxAgeMs !== undefined && ageMs > options.maxAgeMs) {
    return skip(`it was last active ${Math.round(ageMs / 1000)} s ago, longer than maxAgeMs allows`);
  }
  try {
    if (await isOfOpenCall(storeOf(executor).log, head))
      return skip(`run ${head.parentRunId} continues it: one of its tools started it`);
    const agent = await options.agentFor(head);
    if (agent === undefined) return skip(`this host has no agent ${head.agentId}`);
    return (await resumeRun(executor, agent, runId, options.signal)) ?? { runId, how: "taken" };
  } catch (error) {
    const text = thrownText(error);
    return skip(error instanceof LazarusError ? text : `resuming run ${runId}: ${text}`);
  }
}

/** Whether the run was started by a tool whose run is open: the repeated call finds it. */
async function isOfOpenCall(log: RunLog, { runId, parentRunId }: RunHead): Promise<boolean> {
  if (parentRunId === null || !runId.startsWith(`${parentRunId}.`)) return false;
  const parent = await findHead(log, parentRunId);
  return parent !== undefined && !isEnded(parent.status);
}

/** Claims and resumes one run; undefined when another process owns it. Throws when its record cannot be read. */
export async function resumeRun(
  executor: Executor,
  agent: Agent,
  runId: string,
  signal?: AbortSignal,
): Promise<Extract<Recovered, { how: "resumed" }> | undefined> {
  const { log } = storeOf(executor);
  // Read before it is claimed: one that cannot be continued here is left unchanged.
  const seen = await loadRun(log, runId);
  if (seen === undefined) return undefined;
  refuseDurableAgent(seen);
  const lease = await claimRun(log, seen.head);
  if (lease === undefined) return undefined;
  try {
    const head = await requireHead(log, runId);
    // An owner that was slow may have written until the claim.
    const loaded = head.seq === seen.head.seq ? { ...seen, head } : (await loadRun(log, runId))!;
    const result = await executor.run(agent, undefined, { resume: { lease, loaded }, signal });
    return { runId, how: "resumed", result };
  } catch (error) {
    // The record stays interrupted, for a process that can read it.
    await log.journal.releaseLease(lease.runId, lease.epoch).catch(() => {});
    throw error;
  }
}

function refuseDurableAgent({ head, entries }: LoadedRun): void {
  if (segmentsOf(entries)[0]?.input?.phase !== undefined) return;
  throw new LazarusError("RUN_CHANGED", `run ${head.id} was started by a durable agent, not by an executor`, {
    hint: "resume it there: agent.recover()",
  });
}

function storeOf({ store }: Executor): RunStore {
  if (store !== undefined) return store;
  throw new LazarusError("USAGE", "this executor has no store to recover runs from", {
    hint: "createExecutor({ model, store })",
  });
}
