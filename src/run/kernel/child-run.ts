// An executor that is called inside a tool of a durable run: its run is a child of that call. A repeated call finds the child,
// returns its recorded result or continues it, and waits while it waits.
import { LazarusError } from "../../platform/errors.ts";
import { asChild, type Child } from "../engine/child.ts";
import { park, type Scope } from "../engine/scope.ts";
import { isEnded } from "../journal/head.ts";
import { readInfo, readRecord } from "../log/read.ts";
import { findHead, type RunLog, requireHead, timeOf } from "../log/run-log.ts";
import { restoredError } from "../model/outcome.ts";
import type { RunRecord } from "../model/types.ts";
import type { RunStore } from "../store/store.ts";
import type { RunResult } from "./options.ts";

/** What an executor can do about a run. */
export interface ChildWork {
  /** Id of the run, if its caller has chosen one. */
  readonly runId: string | undefined;
  readonly agentId: string;
  /** The beginning of the input, as `RunInfo` has it. */
  readonly prompt: string;
  begin(child: Child | undefined): Promise<RunResult>;
  /** Claims and continues it; undefined when another process has it. */
  resume(runId: string): Promise<RunResult | undefined>;
}

/** Runs an agent as a child of the call of a tool. */
export function runInTool(scope: Scope, store: RunStore | undefined, work: ChildWork): Promise<RunResult> {
  if (store !== undefined) return runChild(store.log, work);
  // Without a store, it is part of the effect of its call. A nested call is repeated, and so would be everything in it.
  if (scope.entry.class !== "nested") return work.begin(undefined);
  return Promise.reject(
    new LazarusError(
      "RUN_UNSUPPORTED",
      `${scope.entry.name} is a nested tool and calls an executor without a store, whose effects would be repeated`,
      { hint: "createExecutor({ model, store })" },
    ),
  );
}

function runChild(log: RunLog, work: ChildWork): Promise<RunResult> {
  return asChild(log, work.runId, async (child) => {
    const { id, parent } = child!;
    const head = await findHead(log, id);
    if (head === undefined) return paused(log, await work.begin(child));
    const { prompt } = readInfo(log, head);
    // Children that start in another order would get each other's results.
    if (head.agentId !== work.agentId || prompt !== work.prompt)
      return park(parent, `its child run ${id} had another agent or input`);
    if (isEnded(head.status)) return { result: resultOf((await readRecord(log, id))!), wakeMs: undefined };
    const isDue = head.wakeMs !== null && head.wakeMs <= timeOf(log);
    if (head.status === "needs-human" || (head.status === "waiting" && !isDue))
      return { result: undefined as never, wakeMs: head.wakeMs };
    const result = await work.resume(id);
    if (result !== undefined) return paused(log, result);
    throw new LazarusError("RUN_BUSY", `run ${id} is being executed by ${head.owner ?? "another process"}`, {
      hint: `lazarus runs show ${id}`,
    });
  });
}

/** The result of a run, and when to check it again if it has not ended. */
async function paused(log: RunLog, result: RunResult) {
  const { status, runId, durable } = result;
  if (!durable || !["waiting", "needs-human", "shutdown"].includes(status))
    return { result, wakeMs: undefined };
  const wakeMs = status === "shutdown" ? timeOf(log) : (await requireHead(log, runId)).wakeMs;
  return { result, wakeMs };
}

/** The result of a run that has ended, from its record. */
function resultOf({ head, output, error, effects }: RunRecord): RunResult {
  const { runId, step: steps, usage, redactions } = head;
  return {
    ...{ runId, status: head.status as RunResult["status"], output, steps, usage, redactions },
    error: error && restoredError(error),
    durable: true,
    unknownEffects: effects.filter(({ state }) => state === "unknown"),
    warnings: [],
  };
}
