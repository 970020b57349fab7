// Puts the seams of a durable run into the settings of one call of the SDK's loop, after `prepareCall`: the model and the
// tools, and what callbacks decide. Callbacks are not called again while earlier steps are replayed.
import type { LanguageModel, ToolSet } from "ai";
import { isStorable } from "../log/codec.ts";
import { entryOf } from "../log/entry.ts";
import { decideOnce } from "./decisions.ts";
import { parkRemovedTools } from "./ledger.ts";
import type { LiveRun } from "./live-run.ts";
import { durableModel, type Included, type ModelHooks, recordedModel } from "./model.ts";
import { durableTools, type EffectRule, type ToolHooks } from "./tools.ts";

// biome-ignore lint/suspicious/noExplicitAny: settings of generateText, streamText and agents, passed through unchanged.
export type Settings = Record<string, any>;

/** What the seams need besides the run. */
export interface SeamOptions {
  readonly effects: Readonly<Record<string, EffectRule>>;
  readonly modelHooks?: ModelHooks | undefined;
  readonly toolHooks?: ToolHooks | undefined;
}

/** Callbacks that are not called during a replay. */
export const CALLBACKS = [
  ...["onStart", "experimental_onStart", "onStepStart", "experimental_onStepStart"],
  ...["onLanguageModelCallStart", "experimental_onLanguageModelCallStart"],
  ...["onLanguageModelCallEnd", "experimental_onLanguageModelCallEnd"],
  ...["onToolExecutionStart", "experimental_onToolCallStart"],
  ...["onToolExecutionEnd", "experimental_onToolCallFinish"],
  ...["onStepEnd", "onStepFinish", "onStepError", "onEnd", "onFinish", "onChunk", "onError", "onAbort"],
] as const;

const TOOL_CALLBACKS: ReadonlySet<string> = new Set([
  ...["onToolExecutionStart", "experimental_onToolCallStart"],
  ...["onToolExecutionEnd", "experimental_onToolCallFinish"],
]);

/** The callbacks of `settings`, without calls for steps that are only replayed. */
export function liveCallbacks(settings: Settings, run: LiveRun): Settings {
  const found = CALLBACKS.filter((name) => typeof settings[name] === "function");
  return Object.fromEntries(
    found.map((name) => [
      name,
      (event: Settings) => (wasCalled(run, name, event) ? undefined : settings[name](event)),
    ]),
  );
}

function wasCalled(run: LiveRun, name: string, event: Settings): boolean {
  if (run.isPast) return true;
  if (!TOOL_CALLBACKS.has(name)) return false;
  const callId = event.toolCall?.toolCallId;
  const place = run.calls.find((call) => call.callId === callId) ?? run.approved.get(callId);
  return place !== undefined && run.wasRecorded(place.step, "effect", place.call) && run.hasEnded(place);
}

/** The settings of one call with both seams in place. */
export function withSeams(settings: Settings, run: LiveRun, options: SeamOptions): Settings {
  parkRemovedTools(run, Object.keys(settings.tools ?? {}));
  const include: Included = settings.include ?? settings.experimental_include ?? {};
  const rawChunks = include.rawChunks ?? settings.includeRawChunks;
  const model = (inner: LanguageModel) =>
    durableModel(inner, run, { ...include, rawChunks }, options.modelHooks);
  const { repairToolCall, experimental_repairToolCall, toolApproval, prepareStep, stopWhen } = settings;
  const repair = repairToolCall ?? experimental_repairToolCall;
  return {
    ...settings,
    ...liveCallbacks(settings, run),
    model: model(settings.model),
    tools: durableTools(settings.tools as ToolSet | undefined, run, options.effects, options.toolHooks),
    ...(repair === undefined
      ? {}
      : {
          repairToolCall: (o: Settings) => decideOnce(run, "repair", o.toolCall.toolCallId, () => repair(o)),
        }),
    ...(toolApproval === undefined ? {} : { toolApproval: decidedOnce(toolApproval, run) }),
    ...(prepareStep === undefined ? {} : { prepareStep: preparedOnce(prepareStep, run, model) }),
    ...(stopWhen === undefined ? {} : { stopWhen: stopAfterReplay(stopWhen, run) }),
    _internal: { ...settings._internal, generateId: () => run.nextId(), generateCallId: () => run.id },
  };
}

function decidedOnce(toolApproval: unknown, run: LiveRun): unknown {
  if (typeof toolApproval === "function") {
    return (o: Settings) => decideOnce(run, "approval", o.toolCall.toolCallId, () => toolApproval(o));
  }
  const rules = Object.entries(toolApproval as Settings).map(([name, rule]) => [
    name,
    typeof rule === "function"
      ? (input: unknown, o: Settings) => decideOnce(run, "approval", o.toolCallId, () => rule(input, o))
      : rule,
  ]);
  return Object.fromEntries(rules);
}

/** Stop conditions are not evaluated for replayed steps; a follower waits for the owner. */
function stopAfterReplay(stopWhen: unknown, run: LiveRun) {
  const conditions = [stopWhen].flat() as ((o: unknown) => boolean | PromiseLike<boolean>)[];
  return async (options: unknown): Promise<boolean> => {
    await run.awaitNext();
    if (run.get(run.step + 1, "response") !== undefined) return false;
    if (run.isFollower) return true;
    const answers = await Promise.all(conditions.map((condition) => condition(options)));
    return answers.some((answer) => answer);
  };
}

/** Fields of a prepared step that are never stored. */
const UNSTORED: ReadonlySet<string> = new Set(["model", "experimental_sandbox", "messages"]);

/** What `prepareStep` returned is recorded, without functions and with messages it passed on as references. */
function preparedOnce(
  prepareStep: (o: Settings) => unknown,
  run: LiveRun,
  wrap: (model: LanguageModel) => unknown,
) {
  return async (o: Settings): Promise<Settings | undefined> => {
    const step = run.step + 1;
    await run.response(step);
    const recorded = run.get(step, "prepare")?.value as Prepared | undefined;
    if (recorded !== undefined && run.get(step, "response") !== undefined && recorded.again !== true) {
      return restore(recorded, run, o);
    }
    const result = (await prepareStep(o)) as Settings | undefined;
    if (!run.isFollower) run.keep(entryOf({ step, kind: "prepare", call: 0 }, summarize(result, o)));
    return result?.model === undefined ? result : { ...result, model: wrap(result.model) };
  };
}

interface Prepared {
  /** It returned something that cannot be stored, so a replay asks again. */
  readonly again?: boolean;
  readonly fields?: Settings;
  readonly model?: { readonly provider: string; readonly modelId: string };
  /** Positions in the messages that were passed in, and messages that were not among them. */
  readonly messages?: readonly unknown[];
}

function summarize(result: Settings | undefined, { messages }: Settings): Prepared {
  if (result === undefined || result === null) return {};
  const fields = Object.entries(result).filter(([name]) => !UNSTORED.has(name));
  if (!fields.every(([, value]) => isStorable(value))) return { again: true };
  const { model } = result;
  const passed = messages as readonly unknown[];
  const sent = result.messages as readonly unknown[] | undefined;
  return {
    fields: Object.fromEntries(fields),
    ...(model === undefined || typeof model === "string"
      ? {}
      : { model: { provider: model.provider, modelId: model.modelId } }),
    ...(sent === undefined
      ? {}
      : { messages: sent.map((each) => (passed.includes(each) ? passed.indexOf(each) : each)) }),
  };
}

function restore({ fields, model, messages }: Prepared, run: LiveRun, o: Settings): Settings | undefined {
  if (fields === undefined) return undefined;
  return {
    ...fields,
    ...(model === undefined ? {} : { model: recordedModel(run, model) }),
    ...(messages === undefined
      ? {}
      : { messages: messages.map((each) => (typeof each === "number" ? o.messages[each] : each)) }),
  };
}
