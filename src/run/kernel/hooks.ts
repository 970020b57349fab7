// What an executor does around each model and tool call: budgets, the time limit of a step, activity reports for the
// watchdog, and the audit log. Nothing here is called for steps that are only replayed.
import { LazarusError } from "../../platform/errors.ts";
import type { ModelHooks } from "../engine/model.ts";
import { usageOf } from "../engine/response.ts";
import type { ToolHooks } from "../engine/tools.ts";
import { orStopped, RunStopped } from "../model/stop.ts";
import { thrownText } from "../model/thrown.ts";
import type { Usage } from "../model/types.ts";
import { callListener } from "./isolate-host.ts";
import type { RunContext } from "./run-context.ts";

/** Hooks of one phase; `end` stops its timer. */
export function createModelHooks(context: RunContext): ModelHooks & { end(): void } {
  const { clock } = context;
  let current: { readonly step: number; readonly startedMs: number } | undefined;
  let timer:
    | { readonly step: number; readonly limit: AbortController; readonly done: AbortController }
    | undefined;
  const onText = createTextListener(context);
  return {
    async before(step) {
      // The SDK retries: a step is checked once.
      if (current?.step === step) return;
      await checkBudget(context);
      current = { step, startedMs: clock.monotonicMs() };
    },
    limit(step) {
      if (timer?.step !== step) {
        timer?.done.abort();
        timer = { step, limit: new AbortController(), done: new AbortController() };
        startTimer(context, timer.limit, timer.done.signal);
      }
      return timer.limit.signal;
    },
    activity(part) {
      context.watch?.activity();
      if (part.type === "text-delta" && typeof part.delta === "string") onText(part.delta);
    },
    async after(step, recorded) {
      timer?.done.abort();
      const usage = usageOf(recorded);
      context.watch?.stepDone(step);
      context.audit("step", { usage });
      await commitToBudget(context, clock.monotonicMs() - (current?.startedMs ?? 0), usage);
    },
    end: () => timer?.done.abort(),
  };
}

function startTimer({ clock, stepTimeoutMs }: RunContext, limit: AbortController, done: AbortSignal): void {
  void clock.sleep(stepTimeoutMs, done).then(() => {
    if (done.aborted) return;
    limit.abort(
      new LazarusError("RUN_TIMEOUT", `the model did not answer within ${stepTimeoutMs} ms`, {
        hint: "raise stepTimeoutMs, or check the provider's status page",
      }),
    );
  });
}

/** Hooks around each call of a tool that really happens. */
export function createToolHooks(context: RunContext): ToolHooks {
  return {
    started: (name) => context.watch?.toolStarted(name),
    ended(tool, effect, error) {
      context.watch?.toolEnded();
      if (error === undefined) context.audit("effect", { effect, tool, state: "done" });
      else if (!context.run.stop.signal.aborted && isFailure(error))
        context.audit("effect", { effect, tool, state: "failed", error: thrownText(error, "the tool") });
    },
  };
}

/** A call that is suspended or whose outcome is unknown has not failed. */
function isFailure(error: unknown): boolean {
  return !(error instanceof Error) || !["CallHalted", "UnknownOutcomeError"].includes(error.name);
}

/** Passes streamed text to the host. A listener that throws is not called again; the run continues. */
function createTextListener({ ports, info, warn }: RunContext): (text: string) => void {
  let hasFailed = false;
  return (text) => {
    if (hasFailed) return;
    callListener(
      () => ports.onText?.(info, text),
      (error) => {
        if (!hasFailed) warn(`onText threw and is not called again: ${thrownText(error)}`);
        hasFailed = true;
      },
    );
  };
}

/** Throws when the caller's budget is spent or cannot be read. A budget that never answers does not delay a stop. */
async function checkBudget({ ports, info, run }: RunContext): Promise<void> {
  const { runId } = info;
  let refusal: string | undefined;
  try {
    refusal = await orStopped(Promise.resolve(ports.budget?.check(info)), run.stop.signal);
  } catch (error) {
    if (error instanceof RunStopped) throw error;
    throw new LazarusError("INTERNAL", `run ${runId}: the budget check failed: ${thrownText(error)}`, {
      hint: `lazarus runs show ${runId}`,
      cause: error,
    });
  }
  if (refusal === undefined) return;
  throw new LazarusError("RUN_BUDGET_SPENT", `run ${runId} has no budget left: ${refusal}`, {
    hint: "raise the budget, or wait until it rolls over",
  });
}

async function commitToBudget(context: RunContext, runtimeMs: number, usage: Usage): Promise<void> {
  const { ports, info, run, warn } = context;
  try {
    const written = ports.budget?.commit(info, { runtimeMs, usage });
    await orStopped(Promise.resolve(written), run.stop.signal);
  } catch (error) {
    warn(`the budget was not updated: ${thrownText(error)}`);
  }
}
