// Recovery at boot: claims every interrupted run of the executor's store under a lease and resumes it on the same
// record, with no new input. A run that another process claims first is skipped; one that cannot be resumed here is
// reported with its reason and left unchanged.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { thrownText } from "../model/thrown.ts";
import type { RunHead } from "../model/types.ts";
import type { RunStore } from "../store/store.ts";
import type { Agent } from "./agent.ts";
import type { Executor } from "./executor.ts";
import type { RunResult } from "./options.ts";

/** Which agents this host has, and how many runs it resumes at once. */
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

/** What became of one interrupted run. */
export type Recovered =
  | { readonly runId: string; readonly how: "resumed"; readonly result: RunResult }
  /** Another process owns it. */
  | { readonly runId: string; readonly how: "taken" }
  | { readonly runId: string; readonly how: "skipped"; readonly reason: string };

const DEFAULT_CONCURRENCY = 16;
/** See `maxDeaths`. */
export const DEFAULT_DEATHS = 5;

/** Resumes every interrupted run of the executor's store and waits for them. A failing run does not make it throw. */
export async function recoverInterrupted(executor: Executor, options: RecoveryOptions): Promise<Recovered[]> {
  const store = storeOf(executor);
  const interrupted = await store.listInterrupted();
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
    const agent = await options.agentFor(head);
    if (agent === undefined) return skip(`this host has no agent ${head.agentId}`);
    return (await resumeRun(executor, agent, runId, options.signal)) ?? { runId, how: "taken" };
  } catch (error) {
    const text = thrownText(error);
    return skip(error instanceof LazarusError ? text : `resuming run ${runId}: ${text}`);
  }
}

/** Claims and resumes one run; undefined when another process owns it. Throws when its record cannot be read. */
export async function resumeRun(
  executor: Executor,
  agent: Agent,
  runId: string,
  signal?: AbortSignal,
): Promise<Extract<Recovered, { how: "resumed" }> | undefined> {
  const store = storeOf(executor);
  const lease = await store.claim(runId);
  if (lease === undefined) return undefined;
  crashPoint("run.resume.claimed");
  try {
    const record = await store.load(runId);
    if (record === undefined) {
      throw new LazarusError("RUN_UNKNOWN", `run ${runId} was deleted from ${store.place} meanwhile`);
    }
    const result = await executor.run(agent, undefined, { resume: { lease, record }, signal });
    return { runId, how: "resumed", result };
  } catch (error) {
    // The record stays interrupted, for a process that can read it.
    await store.release(lease).catch(() => {});
    throw error;
  }
}

function storeOf({ store }: Executor): RunStore {
  if (store !== undefined) return store;
  throw new LazarusError("USAGE", "this executor has no store to recover runs from", {
    hint: "createExecutor({ model, store })",
  });
}
