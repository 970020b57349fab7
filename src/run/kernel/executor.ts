// The executor: begins or resumes a run, runs its phases, and closes its record on every exit path, early errors
// included. It always returns a result; only a mistake in the call itself throws.
import type { LanguageModel } from "ai";
import { LazarusError } from "../../platform/errors.ts";
import { type Machine, systemMachine } from "../../platform/machine.ts";
import type { Child } from "../engine/child.ts";
import type { LiveRun } from "../engine/live-run.ts";
import { watchRun } from "../engine/loop.ts";
import { currentScope, RunSuspended } from "../engine/scope.ts";
import { closeSession, type Session } from "../engine/session.ts";
import type { WaitRow } from "../journal/journal.ts";
import { effectOf, entryOf } from "../log/entry.ts";
import { readInfo } from "../log/read.ts";
import { asRunError, decideOutcome, type Ending, type Outcome } from "../model/outcome.ts";
import { RunStopped, ShutdownError, stopOf } from "../model/stop.ts";
import { thrownText } from "../model/thrown.ts";
import type { Effect, ResultStatus, RunInfo } from "../model/types.ts";
import type { RunStore } from "../store/store.ts";
import { type Agent, checkAgent, type RunInput } from "./agent.ts";
import { runInTool } from "./child-run.ts";
import { createReporter, isolateWatch, type Reporter } from "./isolate-host.ts";
import { createRun } from "./new-run.ts";
import { beginRecord, resumeRecord } from "./open-record.ts";
import type { ExecutorOptions, RunOptions, RunResult, Setup } from "./options.ts";
import { ApprovalNeeded, runPhases } from "./phases.ts";
import { resumeRun } from "./recover.ts";
import { grantedSteps, type RunContext } from "./run-context.ts";

/** Runs agents on the AI SDK's own loop. */
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

const DEFAULT_STEP_TIMEOUT_MS = 600_000;
const DEFAULT_GRACE_MS = 5000;

/** Creates an executor. Without a store it gives bounded runs in memory. */
export function createExecutor(options: ExecutorOptions): Executor {
  const machine = options.machine ?? systemMachine;
  const { store } = options;
  const throttleMs = options.checkpoint?.throttleMs ?? 0;
  if (!(throttleMs >= 0)) {
    throw new LazarusError("USAGE", `throttleMs is ${throttleMs}`, {
      hint: "use 0 or more milliseconds; 0 saves every step",
    });
  }
  const shutdown = new AbortController();
  const graceMs = options.defaults?.graceMs ?? DEFAULT_GRACE_MS;
  const setup: Setup = { ...options, machine, graceMs, shutdown: shutdown.signal };
  const running = new Set<Promise<RunResult>>();
  const executor: Executor = {
    machine,
    store,
    get active() {
      return running.size;
    },
    run(agent, input, runOptions = {}) {
      const run =
        runOptions.resume === undefined
          ? beginAgent(executor, setup, agent, input, runOptions)
          : runAgent(setup, agent, input, runOptions);
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
  return executor;
}

/** Starts a run; inside a tool of a durable run, as a child of its call. */
async function beginAgent(
  executor: Executor,
  setup: Setup,
  agent: Agent,
  input: RunInput | undefined,
  options: RunOptions,
): Promise<RunResult> {
  const scope = currentScope();
  if (scope === undefined) return runAgent(setup, agent, input, options);
  const { info } = createRun(setup.machine, agent, input, options, setup.defaults ?? {});
  return runInTool(scope, setup.store, {
    ...{ runId: options.runId, agentId: info.agentId, prompt: info.prompt },
    begin: (child) => runAgent(setup, agent, input, { ...options, child }),
    resume: async (runId) => (await resumeRun(executor, agent, runId, options.signal))?.result,
  });
}

async function runAgent(
  setup: Setup,
  agent: Agent,
  input: RunInput | undefined,
  options: RunOptions & { readonly child?: Child | undefined },
): Promise<RunResult> {
  const { machine, ports = {}, defaults = {} } = setup;
  const { resume } = options;
  if (resume !== undefined && input !== undefined) {
    throw new LazarusError("USAGE", `run ${resume.lease.runId} is resumed and takes no new input`, {
      hint: "executor.run(agent, undefined, { resume })",
    });
  }
  const created = resume === undefined ? createRun(machine, agent, input, options, defaults) : undefined;
  const info = created?.info ?? readInfo(requireStore(setup).log, resume!.loaded.head);
  let session: Session | undefined;
  let isDurable = true;
  const reporter = createReporter(ports, info, () => session?.run.step ?? 0);
  // This executor does not close a claimed run that it cannot open: its caller releases it.
  if (created === undefined) session = await resumeRecord(setup, resume!, reporter);
  let ending: Ending;
  try {
    if (created !== undefined) ({ session, isDurable } = await beginRecord(setup, agent, created, reporter));
    checkAgent(agent);
    reporter.audit(resume ? "resume" : "begin", { agent: info.agentId });
    ending = {
      kind: "finished",
      output: await runToEnd(setup, { agent, info, session: session!, reporter, options }),
    };
  } catch (error) {
    ending = { kind: "threw", error: session?.run.haltedBy ?? error };
  }
  const end = await closeRecord(session?.run, info, ending, reporter);
  reporter.audit("end", { status: end.status, error: end.error?.code ?? null });
  // The host may close its audit log as soon as it has the result.
  await reporter.flush(machine.clock, setup.graceMs);
  const run = session?.run;
  return {
    runId: info.runId,
    status: end.status,
    output: end.output,
    steps: Math.max(run?.step ?? 0, session?.loaded.head.step ?? 0),
    usage: run?.usage ?? { inputTokens: 0, outputTokens: 0 },
    error: end.error,
    durable: run !== undefined && isDurable,
    unknownEffects: unknownEffects(run),
    redactions: (isDurable && run?.recorder?.redactions) || 0,
    warnings: [...reporter.warnings, ...(run?.warnings ?? [])],
  };
}

function requireStore({ store }: Setup): RunStore {
  if (store !== undefined) return store;
  throw new LazarusError("USAGE", "resuming a run needs an executor with the run's store", {
    hint: "createExecutor({ model, store })",
  });
}

function unknownEffects(run: LiveRun | undefined): Effect[] {
  const effects = run?.entriesOf("effect").filter(({ state }) => state === "unknown") ?? [];
  return effects.map((entry) => effectOf(run!.id, entry));
}

interface OpenRun {
  readonly agent: Agent;
  readonly info: RunInfo;
  readonly session: Session;
  readonly reporter: Reporter;
  readonly options: RunOptions;
}

/** Runs the phases under the run's stop signals, time limit and watchdog. */
async function runToEnd(setup: Setup, open: OpenRun): Promise<string> {
  const { machine, ports = {}, defaults = {} } = setup;
  const { agent, info, session, reporter } = open;
  const { run } = session;
  const ended = new AbortController();
  const watched = watchRun(run);
  const context: RunContext = {
    agent,
    info,
    session,
    run,
    ports,
    clock: machine.clock,
    stepTimeoutMs: agent.stepTimeoutMs ?? defaults.stepTimeoutMs ?? DEFAULT_STEP_TIMEOUT_MS,
    maxRetries: defaults.maxRetries ?? 2,
    mailbox: watched.mailbox,
    watch: undefined,
    modelFor: (tier) => pickModel(setup, tier),
    audit: reporter.audit,
    warn: reporter.warn,
  };
  watched.mailbox.onDelivery = ({ content }) => reporter.audit("nudge", { text: content });
  for (const signal of [open.options.signal, setup.shutdown]) stopOn(run, signal, ended.signal);
  startWatch(context);
  limitTime(context, agent.timeoutMs ?? defaults.timeoutMs, ended.signal);
  try {
    return await runPhases(context);
  } finally {
    ended.abort();
    watched.stop();
    context.watch?.stop();
  }
}

function stopOn(run: LiveRun, signal: AbortSignal | undefined, ended: AbortSignal): void {
  if (signal === undefined) return;
  const stop = () => run.halt(stopOf(signal.reason));
  if (signal.aborted) stop();
  else signal.addEventListener("abort", stop, { once: true, signal: ended });
}

function startWatch(context: RunContext): void {
  const { run, mailbox, warn } = context;
  let nudges = 0;
  try {
    const watch = context.ports.watchdog?.watch(context.info, {
      nudge: (content) => {
        nudges += 1;
        mailbox.messages.push({ id: `${run.id}.nudge.${nudges}`, message: { role: "user", content } });
      },
      kill: (reason) => run.halt(new RunStopped("killed", reason)),
      raiseStepsBy: (steps) => {
        if (Number.isFinite(steps) && steps > 0) grant(context, Math.floor(steps));
      },
    });
    context.watch = watch && isolateWatch(watch, warn);
  } catch (error) {
    warn(`the watchdog could not be started: ${thrownText(error)}`);
  }
}

/** Extra steps are part of the record, so that a resume has them too. */
function grant(context: RunContext, steps: number): void {
  const { run } = context;
  if (!run.isOpen) return;
  const call = run.entriesOf("grant").length;
  run.keep(entryOf({ step: run.step, kind: "grant", call }, { steps }));
  context.audit("grant", { steps, granted: grantedSteps(context) });
}

function limitTime({ clock, run }: RunContext, timeoutMs: number | undefined, ended: AbortSignal): void {
  if (timeoutMs === undefined) return;
  void clock.sleep(timeoutMs, ended).then(() => {
    if (!ended.aborted) run.halt(new RunStopped("timeout", `it took longer than ${timeoutMs} ms`));
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

type End = Pick<Outcome, "output" | "error"> & { readonly status: ResultStatus };

/** Closes the record. If that fails, the record stays interrupted and the result says so. */
async function closeRecord(
  run: LiveRun | undefined,
  { runId }: RunInfo,
  ending: Ending,
  reporter: Reporter,
): Promise<End> {
  const outcome = endOf(ending, runId);
  if (run === undefined) return outcome;
  try {
    await closeSession(run, ...closingOf(ending));
    return outcome;
  } catch (error) {
    if (error instanceof RunStopped) return endOf({ kind: "threw", error }, runId);
    reporter.warn(`the end of the run was not recorded, so it will be resumed: ${thrownText(error)}`);
    if (outcome.status !== "completed") return outcome;
    return { ...outcome, status: "failed", error: asRunError(error, runId) };
  }
}

/** A run that a human has to answer is not over, but the loop has ended. */
function closingOf(ending: Ending): [Ending, (readonly WaitRow[])?] {
  const isAsking = ending.kind === "threw" && ending.error instanceof ApprovalNeeded;
  return isAsking ? [{ kind: "finished", output: "" }, (ending.error as ApprovalNeeded).waits] : [ending];
}

function endOf(ending: Ending, runId: string): End {
  if (ending.kind === "threw" && ending.error instanceof RunSuspended)
    return { status: "waiting", output: null, error: ending.error };
  if (ending.kind === "threw" && ending.error instanceof ApprovalNeeded)
    return { status: "waiting", output: null, error: null };
  return decideOutcome(ending, runId);
}
