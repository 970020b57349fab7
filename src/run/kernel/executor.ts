// The executor: begins or resumes a run, runs its phases, and closes its record on every exit path, early errors
// included. It returns a result whatever happens; only a mistake in the call itself throws.
import type { LanguageModel } from "ai";
import { LazarusError } from "../../platform/errors.ts";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import { asRunError, decideOutcome, type Ending, type Outcome } from "../model/outcome.ts";
import { RunStopped, ShutdownError } from "../model/stop.ts";
import { thrownText } from "../model/thrown.ts";
import type { RunStore } from "../store/store.ts";
import { type Agent, checkAgent, type RunInput } from "./agent.ts";
import { createCheckpointer } from "./checkpointer.ts";
import { createReporter, isolateWatch, type Reporter } from "./isolate-host.ts";
import { createRunState } from "./new-run.ts";
import type { ExecutorOptions, RunOptions, RunResult } from "./options.ts";
import { runPhases } from "./phases.ts";
import type { CheckpointerFactory, RunCheckpointer } from "./ports.ts";
import type { RunContext } from "./run-context.ts";
import { type RunState, stateOf } from "./state.ts";

/** Runs agents, one model call at a time. */
export interface Executor {
  /** Runs an agent until it ends or has to stop. With `resume`, the input must be undefined. */
  run(agent: Agent, input: RunInput | undefined, options?: RunOptions): Promise<RunResult>;
  /** Stops every run at its next boundary, leaves their records for recovery at the next boot, and waits for them. */
  shutdown(): Promise<void>;
  /** Number of runs in progress. */
  readonly active: number;
  readonly machine: Machine;
  /** The store its runs are recorded in, if any. */
  readonly store: RunStore | undefined;
}

/** What all runs of one executor share. */
interface Setup extends ExecutorOptions {
  readonly machine: Machine;
  readonly checkpointer: CheckpointerFactory | undefined;
  readonly shutdown: AbortSignal;
}

const DEFAULT_STEP_TIMEOUT_MS = 600_000;
const DEFAULT_GRACE_MS = 5000;

/** Creates an executor. Without a store it gives bounded runs in memory. */
export function createExecutor(options: ExecutorOptions): Executor {
  const machine = options.machine ?? systemMachine;
  const { store } = options;
  const shutdown = new AbortController();
  const setup: Setup = {
    ...options,
    machine,
    checkpointer:
      options.ports?.checkpointer ?? (store && createCheckpointer(store, { ...options.checkpoint, machine })),
    shutdown: shutdown.signal,
  };
  const running = new Set<Promise<RunResult>>();
  return {
    machine,
    store,
    get active() {
      return running.size;
    },
    run(agent, input, runOptions = {}) {
      const run = runAgent(setup, agent, input, runOptions);
      running.add(run);
      const done = () => running.delete(run);
      run.then(done, done);
      return run;
    },
    async shutdown() {
      shutdown.abort(new ShutdownError());
      await Promise.allSettled(running);
    },
  };
}

async function runAgent(
  setup: Setup,
  agent: Agent,
  input: RunInput | undefined,
  options: RunOptions,
): Promise<RunResult> {
  const { machine, ports = {}, defaults = {} } = setup;
  if (options.resume !== undefined && input !== undefined) {
    const { runId } = options.resume.record.head;
    throw new LazarusError("USAGE", `run ${runId} is resumed and takes no new input`, {
      hint: "executor.run(agent, undefined, { resume })",
    });
  }
  const state = options.resume
    ? stateOf(options.resume.record)
    : createRunState(machine, agent, input, options, defaults);
  const { runId, agentId } = state.info;
  const reporter = createReporter(ports, state);
  let checkpointer: RunCheckpointer | undefined;
  let ending: Ending;
  try {
    checkpointer = await openCheckpointer(setup.checkpointer, state, options, reporter);
    checkAgent(agent);
    reporter.audit(options.resume ? "resume" : "begin", { agent: agentId });
    const output = await runToEnd(setup, { agent, state, checkpointer, reporter, signal: options.signal });
    ending = { kind: "finished", output };
  } catch (error) {
    ending = { kind: "threw", error };
  }
  const outcome = await closeRecord(checkpointer, state, decideOutcome(ending, runId), reporter);
  reporter.audit("end", { status: outcome.status, error: outcome.error?.code ?? null });
  // The host may close its audit log as soon as it has the result.
  await reporter.flush(machine.clock, defaults.graceMs ?? DEFAULT_GRACE_MS);
  return {
    runId,
    status: outcome.status,
    output: outcome.output,
    steps: state.step,
    usage: state.usage,
    error: outcome.error,
    durable: checkpointer !== undefined,
    unknownEffects: [...state.effects.values()].filter((effect) => effect.state === "unknown"),
    redactions: checkpointer?.redactions ?? 0,
    warnings: reporter.warnings,
  };
}

/** A run that cannot be made durable continues with a warning, unless its host requires durability. */
async function openCheckpointer(
  factory: CheckpointerFactory | undefined,
  state: RunState,
  options: RunOptions,
  reporter: Reporter,
): Promise<RunCheckpointer | undefined> {
  if (options.resume !== undefined) {
    if (factory !== undefined) return factory.resume(options.resume, state);
    throw new LazarusError("USAGE", "resuming a run needs an executor with the run's store", {
      hint: "createExecutor({ model, store })",
    });
  }
  try {
    return await factory?.begin(state.info, state);
  } catch (error) {
    if (factory?.required || (error instanceof LazarusError && error.code === "RUN_ID_TAKEN")) throw error;
    reporter.warn(`this run is not durable: ${thrownText(error)}`);
    return undefined;
  }
}

interface OpenRun {
  readonly agent: Agent;
  readonly state: RunState;
  readonly checkpointer: RunCheckpointer | undefined;
  readonly reporter: Reporter;
  readonly signal: AbortSignal | undefined;
}

/** Runs the phases under the run's stop signals, time limit and watchdog. */
async function runToEnd(setup: Setup, open: OpenRun): Promise<string> {
  const { machine, ports = {}, defaults = {} } = setup;
  const { agent, checkpointer, reporter } = open;
  const stop = new AbortController();
  const ended = new AbortController();
  const signals = [stop.signal, setup.shutdown, open.signal, checkpointer?.lost];
  const run: RunContext = {
    agent,
    state: open.state,
    checkpointer,
    ports,
    signal: AbortSignal.any(signals.filter((signal) => signal !== undefined)),
    clock: machine.clock,
    graceMs: defaults.graceMs ?? DEFAULT_GRACE_MS,
    stepTimeoutMs: agent.stepTimeoutMs ?? defaults.stepTimeoutMs ?? DEFAULT_STEP_TIMEOUT_MS,
    maxRetries: defaults.maxRetries ?? 2,
    nudges: [],
    extraSteps: 0,
    textListenerFailed: false,
    watch: undefined,
    modelFor: (tier) => pickModel(setup, tier),
    audit: reporter.audit,
    warn: reporter.warn,
  };
  startWatch(run, stop);
  limitTime(machine, agent.timeoutMs ?? defaults.timeoutMs, stop, ended.signal);
  try {
    return await runPhases(run);
  } finally {
    ended.abort();
    run.watch?.stop();
  }
}

function startWatch(run: RunContext, stop: AbortController): void {
  try {
    const watch = run.ports.watchdog?.watch(run.state.info, {
      nudge: (text) => void run.nudges.push(text),
      kill: (reason) => stop.abort(new RunStopped("killed", reason)),
      raiseStepsBy: (steps) => {
        if (Number.isFinite(steps) && steps > 0) run.extraSteps += Math.floor(steps);
      },
    });
    run.watch = watch && isolateWatch(watch, run.warn);
  } catch (error) {
    run.warn(`the watchdog could not be started: ${thrownText(error)}`);
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

function pickModel({ model: fallback, models = {} }: Setup, tier: string | undefined): LanguageModel {
  const model = tier !== undefined && Object.hasOwn(models, tier) ? models[tier] : fallback;
  if (model !== undefined) return model;
  const tiers = Object.keys(models);
  throw new LazarusError("RUN_AGENT_INVALID", `no model for tier ${JSON.stringify(tier ?? "default")}`, {
    hint: tiers.length > 0 ? `this executor has: ${tiers.join(", ")}` : "createExecutor({ model })",
  });
}

/** Closes the record. If that fails, the record stays interrupted and the result says so. */
async function closeRecord(
  checkpointer: RunCheckpointer | undefined,
  state: RunState,
  outcome: Outcome,
  reporter: Reporter,
): Promise<Outcome> {
  if (checkpointer === undefined) return outcome;
  const { runId } = state.info;
  try {
    if (outcome.closing === undefined) checkpointer.stop();
    else await checkpointer.close(state, outcome.closing);
    return outcome;
  } catch (error) {
    checkpointer.stop();
    if (error instanceof RunStopped) return decideOutcome({ kind: "threw", error }, runId);
    reporter.warn(`the end of the run was not recorded, so it will be resumed: ${thrownText(error)}`);
    if (outcome.status !== "completed") return outcome;
    return { ...outcome, status: "failed", error: asRunError(error, runId) };
  }
}
