// `durable(agent, { store })`: an AI SDK agent whose runs survive their process. The loop is the SDK's; what the
// model answered and what tools did is journaled, and a resumed run replays the loop over the journal.
import {
  type Agent,
  type AgentCallParameters,
  type AgentStreamParameters,
  type GenerateTextResult,
  type OutputInterface,
  type Experimental_Steering as Steering,
  type StreamTextResult,
  type Tool,
  ToolLoopAgent,
  type ToolLoopAgentSettings,
  type ToolSet,
} from "ai";
import { LazarusError } from "../../platform/errors.ts";
import { sha256Hex } from "../../platform/sha256.ts";
import type { HeadRow } from "../journal/journal.ts";
import { type RunLog, requireHead } from "../log/run-log.ts";
import { checkOptions, checkRun } from "../model/check-options.ts";
import type { Lease } from "../model/types.ts";
import { type ApprovalAnswer, approveRun } from "../operations/approve.ts";
import { cancelRun } from "../operations/cancel.ts";
import { type SendOptions, sendToRun } from "../operations/send.ts";
import { type CheckedRun, checkRuns } from "./check.ts";
import { generateChild, streamChild } from "./child.ts";
import { follow, withEarlierCalls } from "./follow.ts";
import type { LiveRun } from "./live-run.ts";
import { generate, type Loop, stream } from "./loop.ts";
import { continueKnown, enqueue, openRun, type RunKind, type RunParameters } from "./open-run.ts";
import { rateHooks } from "./queue.ts";
import { type RecoveredRun, recoverQueues, recoverRuns, startWorker } from "./recover.ts";
import { type RunSchedule, runTicks, type TickReport } from "./schedule.ts";
import { liveCallbacks, type Settings, withSeams } from "./seam.ts";
import type { RunOutcome, Session } from "./session.ts";
import type { EffectRule } from "./tools.ts";

type Context = Record<string, unknown>;

/** A store of durable runs, as `openSqliteRunStore` and the others return it. */
export interface DurableStore {
  readonly log: RunLog;
}

/** Options of a durable agent. */
export interface DurableOptions<TOOLS extends ToolSet> {
  readonly store: DurableStore;
  /** How calls of each tool may be repeated. Default `once`: never without a human. */
  readonly effects?: {
    readonly [NAME in keyof NoInfer<TOOLS>]?: EffectRule<
      TOOLS[NAME] extends Tool<infer INPUT> ? INPUT : never
    >;
  };
  /** Continue interrupted, answered and due runs of this agent in the background. Default true. */
  readonly recover?: boolean;
  /** What to do with runs that another version of the agent started: continue (default), leave them, or refuse. */
  readonly onChange?: "continue" | "pin" | "refuse";
  /** How long a request for approval can be answered; then it counts as denied. Default: no limit. */
  readonly approvalMs?: number;
  /** How long a stopped run waits for an effect in progress, default 5000. */
  readonly graceMs?: number;
}

/** What `generate` and `stream` add to the SDK's results. */
export interface RunReference {
  readonly runId: string;
}

/** A stream's run, and how it ends. */
export interface StreamReference extends RunReference {
  readonly outcome: Promise<RunOutcome>;
}

/** Continues a run with nothing but its id. */
export interface ContinueParameters extends RunParameters {
  readonly runId: string;
}

/** What the SDK's agent accepts, with a run or only a run. */
type CallOf<CALL> = SteeredCall<CALL> | (SteeredCall<CALL> & RunParameters) | ContinueParameters;
type SteeredCall<CALL> = CALL & { readonly experimental_steering?: Steering };

/** An agent whose runs survive their process. */
export class DurableAgent<
  CALL_OPTIONS = never,
  // biome-ignore lint/complexity/noBannedTypes: the SDK's own default.
  TOOLS extends ToolSet = {},
  RUNTIME_CONTEXT extends Context = Context,
  OUTPUT extends OutputInterface = never,
> extends ToolLoopAgent<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT> {
  readonly #settings: Settings;
  readonly #options: DurableOptions<TOOLS>;
  readonly #log: RunLog;
  readonly #kind: RunKind;
  readonly #loop: Loop;

  constructor(
    settings: ToolLoopAgentSettings<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT>,
    options: DurableOptions<TOOLS>,
  ) {
    super(settings);
    checkOptions(options);
    const { id } = settings;
    const { store, onChange = "continue", graceMs = 5000, recover = true } = options;
    if (id === undefined && recover) {
      throw new LazarusError(
        "RUN_AGENT_INVALID",
        "a durable agent needs an id to find its runs after a restart",
        {
          hint: 'new ToolLoopAgent({ id: "mailer", … }), or durable(agent, { store, recover: false })',
        },
      );
    }
    this.#settings = settings;
    this.#options = options;
    this.#log = store.log;
    this.#kind = {
      agentId: id ?? "agent",
      definition: definitionOf(settings),
      ...{ onChange, graceMs, model: modelIdOf(settings) ?? null },
      work: ({ head, lease }) => void this.#continue(head.id, lease).catch(() => {}),
    };
    this.#loop = {
      generate: (run, call) => this.#inner(run).generate(call as never) as Promise<Settings>,
      stream: (run, call) => this.#inner(run).stream(call as never) as Promise<Settings>,
    };
    if (recover) startWorker(this.#log, () => this.recover());
  }

  /** The same agent with the seams of one run in place. */
  #inner(run: LiveRun): ToolLoopAgent<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT> {
    const settings = this.#settings;
    const effects = (this.#options.effects ?? {}) as Readonly<Record<string, EffectRule>>;
    return new ToolLoopAgent({
      ...settings,
      ...liveCallbacks(settings, run),
      prepareCall: async (call: Settings) =>
        withSeams((await settings.prepareCall?.(call)) ?? call, run, { effects, modelHooks: rateHooks(run) }),
    } as never);
  }

  override async generate(
    parameters: CallOf<AgentCallParameters<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT>>,
  ): Promise<GenerateTextResult<TOOLS, RUNTIME_CONTEXT, OUTPUT> & RunReference> {
    const { run, detach, call } = splitCall(parameters);
    return generateChild(
      ...[this.#log, run.runId],
      (child) => openRun(this.#log, this.#kind, "generate", { ...run, child }, call),
      (session) => generate(this.#loop, session, call, { ...this.#options, detach }),
    ) as never;
  }

  override async stream(
    parameters: CallOf<AgentStreamParameters<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT>>,
  ): Promise<StreamTextResult<TOOLS, RUNTIME_CONTEXT, OUTPUT> & StreamReference> {
    const { run, detach, call } = splitCall(parameters);
    return streamChild(
      ...[this.#log, run.runId],
      (child) => openRun(this.#log, this.#kind, "stream", { ...run, child }, call),
      async (session, isChild) => {
        const result = await stream(this.#loop, session, call, { ...this.#options, detach });
        return (isChild ? await withEarlierCalls(this.#loop, session, result, this.#kind) : result) as never;
      },
    );
  }

  /** Streams a run from its beginning without executing it: for reconnects and for other processes. */
  async follow(runId: string): Promise<StreamTextResult<TOOLS, RUNTIME_CONTEXT, OUTPUT> & StreamReference> {
    await requireHead(this.#log, runId);
    return (await follow(this.#loop, this.#log, runId, this.#kind)) as never;
  }

  /** This agent with the parameters of a run in every call, for callers that know only the SDK's: `createAgentUIStream`. */
  withRun(parameters: RunParameters): Agent<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT> {
    return {
      version: this.version,
      id: this.id,
      tools: this.tools,
      generate: (call) => this.generate({ ...call, ...parameters } as never),
      stream: (call) => this.stream({ ...call, ...parameters } as never),
    };
  }

  /** Answers a request for approval, from any process. The run continues with `recover()` or `generate({ runId })`. */
  async approve(
    runId: string,
    approvalId: string,
    answer: ApprovalAnswer = { approved: true },
  ): Promise<"answered" | "expired"> {
    return (await approveRun(this.#log, runId, approvalId, answer)).verdict;
  }

  /**
   * Sends a message to a run. Without a `name`, the model sees it before its next step; with one, it is for a tool that
   * waits with `waitFor`. A second message with the same id is ignored.
   */
  async send(runId: string, message: unknown, options: SendOptions = {}): Promise<"accepted" | "duplicate"> {
    return (await sendToRun(this.#log, runId, message, options)).verdict;
  }

  /** Cancels a run and its child runs. False when it has already ended. */
  async cancel(runId: string): Promise<boolean> {
    return (await cancelRun(this.#log, runId)).some((run) => run.runId === runId);
  }

  /** Adds a run to a queue and returns its id. Any process that recovers runs of this agent executes it. */
  enqueue(
    parameters: SteeredCall<AgentCallParameters<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT>> &
      RunParameters & { readonly queue: string },
  ): Promise<string> {
    const { run, call } = splitCall(parameters);
    return enqueue(this.#log, this.#kind, { ...run, queue: parameters.queue }, call);
  }

  /**
   * Runs the agent at every tick of a schedule, until it is disposed of. Each tick runs once, however many hosts have the
   * schedule; its run has the name of the schedule and the tick as its id.
   */
  schedule(
    schedule: RunSchedule,
    call: AgentCallParameters<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT>,
  ): ScheduledRuns {
    const tick = () => runTicks(this.#log, schedule, (run) => this.enqueue({ ...call, ...run } as never));
    const stop = startWorker(this.#log, tick);
    return { tick, [Symbol.dispose]: stop };
  }

  /** What would happen to the open runs of this agent, without acting: for `lazarus runs check` before a deploy. */
  check(): Promise<CheckedRun[]> {
    return checkRuns(this.#log, this.#kind, this.#loop, this.#settings.tools);
  }

  /** Continues every run of this agent that is interrupted, answered, due or next in its queue, and waits for them. */
  async recover(): Promise<RecoveredRun[]> {
    const recovered = await recoverRuns(this.#log, this.#kind, (head) => this.#continue(head.id));
    const resume = (head: HeadRow, lease: Lease) => this.#continue(head.id, lease);
    return [...recovered, ...(await recoverQueues(this.#log, this.#kind, resume))];
  }

  async #continue(runId: string, lease?: Lease): Promise<RunOutcome["status"]> {
    const session: Session = await continueKnown(this.#log, this.#kind, runId, undefined, lease);
    const mode = session.segments.findLast(({ input }) => input !== undefined)?.input?.mode;
    if (mode === "stream") {
      const { outcome } = await stream(this.#loop, session, {}, this.#options);
      return (await outcome).status;
    }
    await generate(this.#loop, session, {}, this.#options);
    return (await requireHead(this.#log, runId)).status;
  }
}

/** A schedule that is running. */
export interface ScheduledRuns extends Disposable {
  /** Handles what is due now, instead of waiting for the next check. */
  tick(): Promise<TickReport>;
}

/** The run and the SDK's part of the parameters of a call. */
function splitCall(parameters: Settings): {
  run: RunParameters;
  detach: boolean | undefined;
  call: Settings;
} {
  const { runId, thread, caller, queue, priority, detach, ...call } = parameters;
  checkRun({ thread, caller, queue, priority });
  return { run: { runId, thread, caller, queue, priority }, detach, call };
}

/** Makes a `ToolLoopAgent` durable; also one of another copy of the SDK, as in a package that is linked. */
export function durable<
  CALL_OPTIONS,
  TOOLS extends ToolSet,
  RUNTIME_CONTEXT extends Context,
  OUTPUT extends OutputInterface,
>(
  agent: Agent<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT>,
  options: DurableOptions<TOOLS>,
): DurableAgent<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT> {
  // The SDK has no public way to read them; `new DurableAgent(settings, options)` needs none.
  const { version, settings } = agent as {
    version?: string;
    settings?: ToolLoopAgentSettings<CALL_OPTIONS, TOOLS, RUNTIME_CONTEXT, OUTPUT>;
  };
  if (version !== "agent-v1" || typeof settings !== "object") {
    throw new LazarusError("RUN_AGENT_INVALID", "durable() takes a ToolLoopAgent of ai 7", {
      hint: "durable(new ToolLoopAgent({ … }), { store })",
    });
  }
  return new DurableAgent(settings, options);
}

/** Digest of what a model sees of an agent: a different digest means that it was changed. */
export function definitionOf({ id, model, instructions, tools }: Settings): string {
  const described = Object.entries((tools ?? {}) as ToolSet).map(([name, tool]) => [
    name,
    String(tool.description),
  ]);
  return sha256Hex(JSON.stringify([id, modelIdOf({ model }), instructions, described]) ?? "").slice(0, 16);
}

function modelIdOf({ model }: Settings): string | undefined {
  return typeof model === "string" ? model : model?.modelId;
}
