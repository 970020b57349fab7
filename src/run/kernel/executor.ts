// The executor: begins or resumes a run, works it off, and finalises its record on every way out, early errors
// included. It returns a result for whatever happens; only a mistake in the call itself throws.
import type { LanguageModel } from "ai";
import { LazarusError } from "../../platform/errors.ts";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import { thrownText } from "../model/thrown.ts";
import type { RunInfo } from "../model/types.ts";
import { type Agent, checkAgent, type RunInput } from "./agent.ts";
import { beginState } from "./begin.ts";
import { guardAudit, guardWatch, tellHost } from "./isolate-host.ts";
import type { ExecutorOptions, RunOptions, RunResult } from "./options.ts";
import { asRunError, decideOutcome, type Ending, type Outcome } from "./outcome.ts";
import { workOff } from "./phases.ts";
import type { RunCheckpointer, RunEvent, RunPorts, Watch } from "./ports.ts";
import type { RunWork } from "./run-work.ts";
import { type RunState, stateOf } from "./state.ts";
import { RunStopped, ShutdownError } from "./stop.ts";

/** Runs agents, one model call at a time. */
export interface Executor {
  /** Runs an agent to an end, or as far as it gets. With `resume` the input must be undefined. */
  run(agent: Agent, input: RunInput | undefined, options?: RunOptions): Promise<RunResult>;
  /** Stops every run at its next boundary, leaves their records for boot recovery, and waits for them. */
  shutdown(): Promise<void>;
  readonly active: number;
  readonly machine: Machine;
}

const DEFAULT_STEP_TIMEOUT_MS = 600_000;
const DEFAULT_GRACE_MS = 5000;

/** Makes an executor. Without ports it gives bounded runs in memory. */
export function createExecutor(options: ExecutorOptions): Executor {
  const machine = options.machine ?? systemMachine;
  const goingDown = new AbortController();
  const running = new Set<Promise<RunResult>>();
  return {
    machine,
    get active() {
      return running.size;
    },
    run(agent, input, runOptions = {}) {
      const run = runAgent({ ...options, machine }, goingDown.signal, agent, input, runOptions);
      running.add(run);
      const done = () => running.delete(run);
      run.then(done, done);
      return run;
    },
    async shutdown() {
      goingDown.abort(new ShutdownError());
      await Promise.allSettled(running);
    },
  };
}

async function runAgent(
  options: ExecutorOptions & { readonly machine: Machine },
  goingDown: AbortSignal,
  agent: Agent,
  input: RunInput | undefined,
  run: RunOptions,
): Promise<RunResult> {
  const { machine, ports = {}, defaults = {} } = options;
  const warnings: string[] = [];
  if (run.resume !== undefined && input !== undefined) {
    throw new LazarusError(
      "USAGE",
      `run ${run.resume.record.head.runId} is resumed, and takes no new input`,
      {
        hint: "executor.run(agent, undefined, { resume })",
      },
    );
  }
  const state = run.resume ? stateOf(run.resume.record) : beginState(machine, agent, input, run, defaults);
  const { info } = state;
  const stop = new AbortController();
  const ended = new AbortController();
  const warn = (warning: string) => {
    warnings.push(warning);
    // A host's callback must not end the host's run.
    tellHost(
      () => ports.onWarning?.(info, warning),
      () => {},
    );
    audit("warning", { warning });
  };
  const log = guardAudit(ports.audit, (warning) => void warnings.push(warning));
  const audit = (kind: RunEvent["kind"], data: Record<string, unknown>) =>
    log.record(info, { kind, step: state.step, data });
  const graceMs = defaults.graceMs ?? DEFAULT_GRACE_MS;
  let checkpointer: RunCheckpointer | undefined;
  let watch: Watch | undefined;
  let ending: Ending;
  try {
    checkpointer = await openRecord(ports, state, run, warn);
    checkAgent(agent);
    audit(run.resume ? "resume" : "begin", { agent: info.agentId });
    const signals = [stop.signal, goingDown, run.signal, checkpointer?.lost].filter(
      (each) => each !== undefined,
    );
    const work: RunWork = {
      ...{
        agent,
        state,
        ports,
        signal: AbortSignal.any(signals),
        clock: machine.clock,
        nudges: [],
        deaf: false,
        extraSteps: 0,
      },
      graceMs,
      stepTimeoutMs: agent.stepTimeoutMs ?? defaults.stepTimeoutMs ?? DEFAULT_STEP_TIMEOUT_MS,
      maxRetries: defaults.maxRetries ?? 2,
      get watch() {
        return watch;
      },
      ...{ audit, warn, nowMs: () => Math.floor(machine.clock.nowMs()) },
      modelFor: (tier) => pickModel(options, tier),
      save: (urgency) => saveState(checkpointer, state, urgency, warn),
    };
    watch = startWatch(ports, info, work, stop, warn);
    limitTime(machine, agent.timeoutMs ?? defaults.timeoutMs, stop, ended.signal);
    ending = { kind: "finished", output: await workOff(work) };
  } catch (error) {
    ending = { kind: "threw", error };
  }
  ended.abort();
  watch?.stop();
  const outcome = decideOutcome(ending, info.runId);
  const recorded = await closeRecord(checkpointer, state, outcome, warn);
  audit("end", { status: recorded.status, error: recorded.error?.code ?? null });
  // A host may close its log as soon as it has the result.
  await log.settle(machine.clock, graceMs);
  return {
    runId: info.runId,
    status: recorded.status,
    output: recorded.output,
    steps: state.step,
    usage: state.usage,
    error: recorded.error,
    durable: checkpointer !== undefined,
    unknownEffects: [...state.effects.values()].filter(({ state: is }) => is === "unknown"),
    redactions: checkpointer?.redactions ?? 0,
    warnings,
  };
}

/** A run that cannot be made durable goes on without, with a warning, unless its host said otherwise. */
async function openRecord(
  ports: RunPorts,
  state: RunState,
  run: RunOptions,
  warn: (warning: string) => void,
): Promise<RunCheckpointer | undefined> {
  const factory = ports.checkpointer;
  if (run.resume !== undefined) {
    if (factory !== undefined) return factory.resume(run.resume, state);
    throw new LazarusError("USAGE", "a run is resumed with the checkpointer of the store it lies in", {
      hint: "createExecutor({ ports: { checkpointer: createCheckpointer(store) } })",
    });
  }
  try {
    return await factory?.begin(state.info, state);
  } catch (error) {
    if (factory?.required || (error instanceof LazarusError && error.code === "RUN_ID_TAKEN")) throw error;
    warn(`this run is not durable: ${thrownText(error)}`);
    return undefined;
  }
}

/** A save that no effect waits for may fail: what it held goes out with the next one. */
async function saveState(
  checkpointer: RunCheckpointer | undefined,
  state: RunState,
  urgency: "now" | "throttled",
  warn: (warning: string) => void,
): Promise<void> {
  try {
    await checkpointer?.save(state, urgency);
  } catch (error) {
    const fatal = error instanceof LazarusError && ["RUN_OUT_OF_ORDER", "RUN_UNKNOWN"].includes(error.code);
    if (urgency === "now" || fatal || error instanceof RunStopped) throw error;
    warn(`a step was not saved yet: ${thrownText(error)}`);
  }
}

/** Ends the record. When that fails the record stays interrupted, which is the truth, and the result says so. */
async function closeRecord(
  checkpointer: RunCheckpointer | undefined,
  state: RunState,
  outcome: Outcome,
  warn: (warning: string) => void,
): Promise<Outcome> {
  if (checkpointer === undefined) return outcome;
  try {
    if (outcome.closing === undefined) checkpointer.stop();
    else await checkpointer.close(state, outcome.closing);
    return outcome;
  } catch (error) {
    checkpointer.stop();
    if (error instanceof RunStopped) return decideOutcome({ kind: "threw", error }, state.info.runId);
    warn(`the end of the run was not recorded, and it will be resumed: ${thrownText(error)}`);
    if (outcome.status !== "completed") return outcome;
    return {
      ...outcome,
      status: "failed",
      error: asRunError(error, state.info.runId),
    };
  }
}

function startWatch(
  ports: RunPorts,
  info: RunInfo,
  work: RunWork,
  stop: AbortController,
  warn: (warning: string) => void,
): Watch | undefined {
  try {
    const watch = ports.watchdog?.watch(info, {
      nudge: (text) => void work.nudges.push(text),
      kill: (reason) => stop.abort(new RunStopped("killed", reason)),
      raiseStepsBy: (steps) => {
        if (Number.isFinite(steps) && steps > 0) work.extraSteps += Math.floor(steps);
      },
    });
    return watch && guardWatch(watch, warn);
  } catch (error) {
    warn(`this run is not watched: ${thrownText(error)}`);
    return undefined;
  }
}

function limitTime(
  machine: Machine,
  timeoutMs: number | undefined,
  stop: AbortController,
  ended: AbortSignal,
): void {
  if (timeoutMs === undefined) return;
  void machine.clock.sleep(timeoutMs, ended).then(() => {
    if (!ended.aborted) stop.abort(new RunStopped("timeout", `it took longer than ${timeoutMs} ms`));
  });
}

function pickModel(options: ExecutorOptions, tier: string | undefined): LanguageModel {
  const { models = {} } = options;
  const model = tier !== undefined && Object.hasOwn(models, tier) ? models[tier] : options.model;
  if (model !== undefined) return model;
  const tiers = Object.keys(models);
  throw new LazarusError(
    "RUN_AGENT_INVALID",
    `there is no model for tier ${JSON.stringify(tier ?? "default")}`,
    {
      hint: tiers.length > 0 ? `this executor has: ${tiers.join(", ")}` : "createExecutor({ model })",
    },
  );
}
