// The phases of a run, in sequence. Each is one call of the AI SDK's loop over the run's journal, with its own conversation. A
// new run and a resumed one take the same path: completed phases are skipped by position, and the loop of the interrupted one
// replays the steps that it has.
import { generateText, type ModelMessage, streamText } from "ai";
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { requestedApprovals } from "../engine/approvals.ts";
import { inputOf, type Loop } from "../engine/loop.ts";
import { type Settings, withSeams } from "../engine/seam.ts";
import { type Segment, type StoredInput, segmentsOf } from "../engine/session.ts";
import { durableSteering } from "../engine/steering.ts";
import type { WaitRow } from "../journal/journal.ts";
import { encodeValue } from "../log/codec.ts";
import { entryOf } from "../log/entry.ts";
import { phasesOf, textOf } from "../log/read.ts";
import { RunStopped } from "../model/stop.ts";
import { thrownText } from "../model/thrown.ts";
import { MODEL_SETTINGS, type ModelSettings, type Phase, phasePrompt } from "./agent.ts";
import { createModelHooks, createToolHooks } from "./hooks.ts";
import { grantedSteps, type RunContext } from "./run-context.ts";
import { effectRules, sdkTools } from "./tools.ts";

/** The phase of the input of an agent with phases: it precedes all of them. */
export const INPUT_PHASE = -1;

/** Runs all phases that are left and returns the output of the run. */
export async function runPhases(context: RunContext): Promise<string> {
  const { agent, info, run } = context;
  const phases: readonly Phase[] = agent.phases ?? [{ name: "main", prompt: "" }];
  const isPhased = agent.phases !== undefined;
  const done = phasesOf(run.entriesOf("phase"));
  const wasPhased = firstInput(context)?.given !== undefined || firstInput(context)?.phase === INPUT_PHASE;
  if (done.length > phases.length || isPhased !== wasPhased) {
    const began = wasPhased ? `is in phase ${done.length}` : "has no phases";
    throw new LazarusError(
      "RUN_AGENT_INVALID",
      `run ${info.runId} ${began}, but agent ${agent.id} has ${agent.phases?.length ?? "no"} phases: it is not the agent that began the run`,
      { hint: "resume it with the agent that started it, or fork it at step 0" },
    );
  }
  const outputs = done.map(({ name, output }) => ({ name, output }));
  // Completed phases are skipped by position, so that two phases of the same name both run.
  for (let position = done.length; position < phases.length; position += 1) {
    const phase = phases[position]!;
    const result = await runPhase(context, phase, position, outputs);
    if (!isPhased) return result.output;
    const { name } = phase;
    outputs.push({ name, output: result.output });
    run.keep(entryOf({ step: run.step, kind: "phase", call: position }, { name, ...result }));
    run.recorder!.head({ phase: position + 1 });
    context.audit("phase", { position, name, fellBack: result.fellBack });
    if (position + 1 < phases.length) run.writeBehind();
    crashPoint("engine.phase.finished");
  }
  return outputs.at(-1)?.output ?? "";
}

/** Ends the phases of a run that a human has to answer first. */
export class ApprovalNeeded extends Error {
  readonly waits: readonly WaitRow[];

  constructor(waits: readonly WaitRow[]) {
    super("the run waits for an approval");
    this.waits = waits;
  }
}

type Outputs = readonly { readonly name: string; readonly output: string }[];

async function runPhase(
  context: RunContext,
  phase: Phase,
  position: number,
  outputs: Outputs,
): Promise<{ output: string; fellBack: boolean }> {
  const { run } = context;
  try {
    const segment = segmentOf(context, position) ?? beginPhase(context, phase, position, outputs);
    if (run.haltedBy !== undefined) throw run.haltedBy;
    return { output: await runConversation(context, phase, segment, position), fellBack: false };
  } catch (thrown) {
    const error = run.haltedBy ?? causeOf(thrown);
    if (error instanceof ApprovalNeeded) throw error;
    const isPhaseFailure =
      error instanceof LazarusError ? PHASE_FAILURES.has(error.code) : !(error instanceof RunStopped);
    if (phase.fallback === undefined || !isPhaseFailure || run.haltedBy !== undefined) throw error;
    context.warn(`phase ${phase.name} failed and its fallback is used: ${thrownText(error)}`);
    return { output: phase.fallback, fellBack: true };
  }
}

/** Errors of the phase itself. A failing store, a spent budget or a question for a human is not answered by a fallback. */
const PHASE_FAILURES: ReadonlySet<string> = new Set([
  "RUN_MODEL_FAILED",
  "RUN_MODEL_ENDLESS",
  "RUN_STEPS_EXHAUSTED",
  "RUN_TIMEOUT",
]);

/** The SDK wraps the error of a second attempt. */
function causeOf(error: unknown): unknown {
  const last = (error as { lastError?: unknown } | undefined)?.lastError;
  return last instanceof LazarusError || last instanceof RunStopped ? last : error;
}

function segmentsIn({ run }: RunContext): Segment[] {
  return segmentsOf(run.entriesOf("input"));
}

function firstInput(context: RunContext): StoredInput | undefined {
  return segmentsIn(context)[0]?.input;
}

/** The last call of the loop in a phase. The answers to a request belong to the phase that asked. */
function segmentOf(context: RunContext, position: number): Segment | undefined {
  let phase = INPUT_PHASE;
  return segmentsIn(context)
    .filter(({ input }) => {
      phase = input?.phase ?? phase;
      return phase === position;
    })
    .at(-1);
}

/** Records the prompt of a phase. That of the first one joins the input. */
function beginPhase(context: RunContext, phase: Phase, position: number, outputs: Outputs): Segment {
  const { run, agent } = context;
  const given = givenMessages(context);
  const input = given.map(textOf).join("\n\n");
  const prompt: ModelMessage = { role: "user", content: phasePrompt(phase, { input, outputs }) };
  const mode = agent.stream === true ? "stream" : "generate";
  const isFirst = position === 0;
  if (isFirst) encodeValue(given, "input");
  const stored: StoredInput = {
    mode,
    call: { messages: isFirst ? [...given, prompt] : [prompt] },
    phase: position,
    ...(isFirst ? { given: given.length } : {}),
  };
  const call = isFirst ? 0 : segmentsIn(context).length;
  run.messages += 1;
  run.keep(entryOf({ step: isFirst ? 0 : run.step, kind: "input", call }, { input: stored }));
  return segmentOf(context, position)!;
}

function givenMessages(context: RunContext): ModelMessage[] {
  const { call, given, phase } = firstInput(context)!;
  const messages = call.messages as ModelMessage[];
  return phase === INPUT_PHASE ? messages : messages.slice(0, given);
}

async function runConversation(
  context: RunContext,
  phase: Phase,
  segment: Segment,
  position: number,
): Promise<string> {
  const { run, session, agent } = context;
  const hooks = createModelHooks(context);
  try {
    run.enterSegment(segment.base);
    const loop = loopOf(context, phase, phaseBase(context, position), hooks);
    const input = await inputOf(loop, { ...session, segments: segmentsIn(context) }, segment);
    const steering = durableSteering(run, context.mailbox, undefined);
    const call = { ...input, abortSignal: run.stop.signal, experimental_steering: steering };
    const work = agent.stream === true ? drained(loop.stream(run, call)) : loop.generate(run, call);
    work.catch(() => {});
    const result = await Promise.race([work, run.halted]);
    const waits = requestedApprovals(run, result.finalStep.content, null);
    if (waits.length > 0) throw new ApprovalNeeded(waits);
    return answerOf(phase, run.step - phaseBase(context, position), result);
  } finally {
    hooks.end();
  }
}

/** The last step before a phase. */
function phaseBase(context: RunContext, position: number): number {
  return segmentsIn(context).find(({ input }) => input?.phase === position)?.base ?? 0;
}

/** The SDK's loop with the settings of a phase. */
function loopOf(
  context: RunContext,
  phase: Phase,
  base: number,
  modelHooks: ReturnType<typeof createModelHooks>,
): Loop {
  const { agent, info } = context;
  const tools = phase.tools ?? agent.tools ?? {};
  const instructions = phase.instructions ?? agent.instructions;
  const limit = phase.maxIterations ?? info.maxIterations;
  const seams = { effects: effectRules(context, tools), modelHooks, toolHooks: createToolHooks(context) };
  const settings = (call: Settings): Settings => ({
    ...modelSettings(agent),
    ...modelSettings(phase),
    ...call,
    model: agent.model ?? context.modelFor(phase.modelTier ?? info.modelTier ?? undefined),
    tools: sdkTools(context, tools),
    maxRetries: context.maxRetries,
    // An existing conversation may contain system messages from personas and skills.
    allowSystemInMessages: true,
    stopWhen: () => context.run.step - base >= limit + grantedSteps(context),
    ...(instructions === undefined ? {} : { instructions }),
  });
  return {
    generate: (run, call) => generateText(withSeams(settings(call), run, seams) as never) as never,
    stream: (run, call) =>
      streamText({ ...withSeams(settings(call), run, seams), onError: () => {} } as never) as never,
  };
}

function modelSettings(part: ModelSettings): Settings {
  const set = MODEL_SETTINGS.filter((name) => part[name] !== undefined).map((name) => [name, part[name]]);
  return Object.fromEntries(set);
}

/** Reads a stream to its end. Throws the error that ended it. */
async function drained(result: Settings | Promise<Settings>): Promise<Settings> {
  const { fullStream, steps } = await result;
  Promise.resolve(steps).catch(() => {});
  for await (const part of fullStream as AsyncIterable<Settings>) {
    if (part.type === "error") throw part.error;
    if (part.type === "abort") throw new RunStopped("cancelled", "the stream was aborted");
  }
  return { finalStep: (await steps).at(-1) };
}

/** The answer of a phase; none if the loop ended with tool calls or was cut off before its first word. */
function answerOf(phase: Phase, steps: number, { finalStep }: Settings): string {
  const { text, finishReason, toolCalls } = finalStep as {
    text: string;
    finishReason: string;
    toolCalls: readonly { providerExecuted?: boolean }[];
  };
  const hasCalls = toolCalls.some(({ providerExecuted }) => providerExecuted !== true);
  const isCutOff = finishReason === "length" || finishReason === "content-filter";
  if (isCutOff && (text === "" || hasCalls)) {
    throw new LazarusError(
      "RUN_MODEL_FAILED",
      `the model gave no answer: it stopped because of ${finishReason}`,
      { hint: finishReason === "length" ? "raise the model's maximum output" : "rephrase the task" },
    );
  }
  if (!hasCalls) return text;
  throw new LazarusError(
    "RUN_STEPS_EXHAUSTED",
    `phase ${phase.name} used its ${steps} steps without an answer`,
    { hint: "raise maxIterations, or give the phase a fallback" },
  );
}
