// Boot recovery: every interrupted run is claimed under a lease and worked off from where it stood, with no new input
// and with the same record. A run that another process claims first is skipped; one that cannot be resumed here is
// named with its reason and left as it is.
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { thrownText } from "../model/thrown.ts";
import type { RunHead } from "../model/types.ts";
import type { RunStore } from "../store/store.ts";
import type { Agent } from "./agent.ts";
import type { Executor } from "./executor.ts";
import type { RunResult } from "./options.ts";

/** Which agents this host has, and how much it takes up at once. */
export interface RecoveryOptions {
  /** The agent of a run; undefined leaves the run for another process. */
  agentFor(head: RunHead): Agent | undefined | Promise<Agent | undefined>;
  /** How many are worked on at a time; 16 unless told. */
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
  /** Runs older than this stay where they are; no limit unless told. */
  readonly maxAgeMs?: number;
  /**
   * How often in a row a run may be taken up without getting on; 5 unless told. What ends its process each time would
   * end this one, too, and all the other runs with it. `lazarus runs retry` gives it another chance.
   */
  readonly maxDeaths?: number;
}

/** What became of one interrupted run. */
export type Recovered =
  | { readonly runId: string; readonly how: "resumed"; readonly result: RunResult }
  /** Another process had it, or took it first. */
  | { readonly runId: string; readonly how: "taken" }
  | { readonly runId: string; readonly how: "skipped"; readonly reason: string };

const DEFAULT_CONCURRENCY = 16;
/** See `maxDeaths`. */
export const DEFAULT_DEATHS = 5;

/** Resumes all that was interrupted and waits for it. Never throws for the sake of one run. */
export async function recoverInterrupted(
  executor: Executor,
  store: RunStore,
  options: RecoveryOptions,
): Promise<Recovered[]> {
  const interrupted = await store.listInterrupted();
  const results: Recovered[] = [];
  let next = 0;
  const worker = async () => {
    while (next < interrupted.length && !options.signal?.aborted) {
      const { head, blocked } = interrupted[next++]!;
      results.push(await recoverOne(executor, store, options, head, blocked));
    }
  };
  const { concurrency = DEFAULT_CONCURRENCY } = options;
  // A width that is no number must not mean that nothing is resumed.
  const width = Math.min(concurrency >= 1 ? Math.floor(concurrency) : 1, interrupted.length);
  await Promise.all(Array.from({ length: width }, worker));
  return results;
}

async function recoverOne(
  executor: Executor,
  store: RunStore,
  options: RecoveryOptions,
  head: RunHead,
  blocked: string | null,
): Promise<Recovered> {
  const { runId } = head;
  const skip = (reason: string): Recovered => ({ runId, how: "skipped", reason });
  if (blocked !== null) return skip(blocked);
  const { maxDeaths = DEFAULT_DEATHS } = options;
  if (head.deaths >= maxDeaths) {
    return skip(
      `it was taken up ${head.deaths} times and got no further than step ${head.step}: its process dies there; ` +
        `when that is mended: lazarus runs retry ${runId}`,
    );
  }
  const ageMs = executor.machine.clock.nowMs() - head.updatedAtMs;
  if (options.maxAgeMs !== undefined && ageMs > options.maxAgeMs) {
    return skip(`it was last worked on ${Math.round(ageMs / 1000)} s ago, longer than this host resumes`);
  }
  try {
    const agent = await options.agentFor(head);
    if (agent === undefined) return skip(`this host has no agent ${head.agentId}`);
    return (await resumeRun(executor, store, agent, runId, options.signal)) ?? { runId, how: "taken" };
  } catch (error) {
    const text = thrownText(error);
    return skip(error instanceof LazarusError ? text : `resuming run ${runId}: ${text}`);
  }
}

/** Claims and resumes one run; undefined when someone else has it. Throws when its record cannot be read. */
export async function resumeRun(
  executor: Executor,
  store: RunStore,
  agent: Agent,
  runId: string,
  signal?: AbortSignal,
): Promise<Extract<Recovered, { how: "resumed" }> | undefined> {
  const lease = await store.claim(runId);
  if (lease === undefined) return undefined;
  crashPoint("run.resume.claimed");
  try {
    const record = await store.load(runId);
    if (record === undefined)
      throw new LazarusError("RUN_UNKNOWN", `run ${runId} vanished from ${store.place}`);
    const result = await executor.run(agent, undefined, { resume: { lease, record }, signal });
    return { runId, how: "resumed", result };
  } catch (error) {
    // Read errors leave the record as it is, for a process that can read it.
    await store.release(lease).catch(() => {});
    throw error;
  }
}
