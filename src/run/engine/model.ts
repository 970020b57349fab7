// The model of a durable run. A recorded response is not requested again; a new one is recorded before anything
// depends on it: it is written together with the start of its first effect, or while the next step runs. Only `finish` of a
// stream is held back, because the SDK starts tools there. Steps are counted by responses, not by calls: the SDK retries.
import { gateway, type LanguageModel, type LanguageModelMiddleware, wrapLanguageModel } from "ai";
import { crashPoint } from "../../platform/crash-point.ts";
import { LazarusError } from "../../platform/errors.ts";
import { isStorable } from "../log/codec.ts";
import { entryOf } from "../log/entry.ts";
import { isPromptDigest, promptDigest } from "../model/prompt-digest.ts";
import { orStopped } from "../model/stop.ts";
import { PartPublisher, readLiveParts, remainder, restarted } from "./live-parts.ts";
import { type LiveRun, never } from "./live-run.ts";
import {
  callsOf,
  compactParts,
  type GenerateResult,
  itemsOf,
  partsOf,
  type RecordedResponse,
  resultOf,
  type StreamPart,
  usageOf,
} from "./response.ts";

type Model = Exclude<LanguageModel, string>;
type Prompt = Parameters<LiveRun["chainOf"]>[0];
type Wrapped = ReturnType<typeof wrapLanguageModel>;

/** Parts of the response that are stored only if the caller wants them in the result. */
export interface Included {
  readonly requestBody?: boolean | undefined;
  readonly responseBody?: boolean | undefined;
  readonly rawChunks?: boolean | undefined;
}

/** What happens around each call of the model; the executor checks budgets and counts here. */
export interface ModelHooks {
  before?(step: number): Promise<void>;
  /** Aborts when the step takes too long; the same signal for every attempt. */
  limit?(step: number): AbortSignal;
  activity?(part: StreamPart): void;
  after?(step: number, recorded: RecordedResponse): Promise<void>;
}

/** A streamed response of more characters is aborted as endless. */
const MAX_CHARACTERS = 4_000_000;
const EVERYTHING = { "*/*": [/^/] };

/** Wraps a model for one run. */
export function durableModel(
  model: LanguageModel,
  run: LiveRun,
  include: Included = {},
  hooks: ModelHooks = {},
): Wrapped {
  const inner = typeof model === "string" ? namedModel(model) : model;
  const middleware: LanguageModelMiddleware = {
    specificationVersion: "v4",
    wrapGenerate: async ({ doGenerate, params, model: { provider, modelId } }) => {
      const { step, old } = await openStep(run, params.prompt);
      if (old !== undefined) return resultOf(await replay(run, step, old)) as never;
      await beforeCall(run, step, hooks);
      const limit = hooks.limit?.(step);
      const answer = limit === undefined ? doGenerate() : orStopped(Promise.resolve(doGenerate()), limit);
      const result = trimmed(await answer, include, run, step, modelId);
      crashPoint("engine.model.answered");
      await record(run, step, params.prompt, { provider, modelId, result }, hooks);
      return result as never;
    },
    wrapStream: async ({ doStream, params, model: { provider, modelId } }) => {
      if (isBehind(run)) {
        run.beginStep(run.step + 1);
        return followStream(run, run.step + 1) as never;
      }
      const { step, old } = await openStep(run, params.prompt);
      if (old !== undefined) return replayStream(run, step, old) as never;
      await beforeCall(run, step, hooks);
      const limit = hooks.limit?.(step);
      const answer = limit === undefined ? doStream() : orStopped(Promise.resolve(doStream()), limit);
      const { stream, request, response } = await answer;
      const kept = { request: include.requestBody ? request : { ...request, body: undefined }, response };
      const recorded = recordedStream(run, step, params.prompt, { include, hooks, provider, modelId, kept });
      return {
        request,
        response,
        stream: stream.pipeThrough(recorded as never, limit && { signal: limit }),
      } as never;
    },
  };
  const wrapped = wrapLanguageModel({ model: inner as Model & { specificationVersion: "v4" }, middleware });
  // During a replay no file is downloaded: the prompt is not used.
  return Object.defineProperty({ ...wrapped }, "supportedUrls", {
    get: () =>
      run.get(run.step + 1, "response") === undefined && !run.isPast ? inner.supportedUrls : EVERYTHING,
  });
}

/** A placeholder for the model of a recorded step, when the agent no longer has that model. */
export function recordedModel(
  run: LiveRun,
  { provider, modelId }: { provider: string; modelId: string },
): Wrapped {
  const gone = () => Promise.reject(new Error(`the model ${modelId} of a recorded step is not available`));
  const stub = { specificationVersion: "v4" as const, provider, modelId, supportedUrls: {} };
  return durableModel({ ...stub, doGenerate: gone, doStream: gone }, run);
}

function namedModel(id: string): Model {
  return (globalThis.AI_SDK_DEFAULT_PROVIDER ?? gateway).languageModel(id);
}

async function openStep(
  run: LiveRun,
  prompt: Prompt,
): Promise<{ step: number; old: RecordedResponse | undefined }> {
  const step = run.step + 1;
  const entry = await run.response(step);
  run.beginStep(step);
  if (entry !== undefined) run.onReplay?.(step, isPromptDigest(entry.digest, run.chainOf(prompt)));
  return { step, old: entry?.value as RecordedResponse | undefined };
}

async function replay(run: LiveRun, step: number, recorded: RecordedResponse): Promise<RecordedResponse> {
  run.enterStep(step, callsOf(step, itemsOf(recorded)));
  // Only the owner knows whether a message makes the run continue after a response without calls.
  if (run.calls.length === 0) await run.awaitNext();
  return recorded;
}

async function beforeCall(run: LiveRun, step: number, hooks: ModelHooks): Promise<void> {
  if (run.isFollower) return await never();
  // The last step's results are written while the model responds.
  run.writeBehind();
  await hooks.before?.(step);
  if (run.stop.signal.aborted) throw run.stop.signal.reason;
  crashPoint("engine.model.before");
}

/** Keeps ids stable, and drops bodies that the caller does not want. */
function trimmed(
  result: unknown,
  include: Included,
  run: LiveRun,
  step: number,
  modelId: string,
): GenerateResult {
  const { request, response, ...rest } = result as GenerateResult;
  return {
    ...rest,
    ...(request === undefined
      ? {}
      : { request: include.requestBody ? request : { ...request, body: undefined } }),
    response: {
      ...response,
      id: response?.id ?? `${run.id}.${step}`,
      timestamp: response?.timestamp ?? new Date(run.now()),
      modelId: response?.modelId ?? modelId,
      body: include.responseBody ? response?.body : undefined,
    },
  };
}

async function record(
  run: LiveRun,
  step: number,
  prompt: Prompt,
  recorded: RecordedResponse,
  hooks: ModelHooks,
): Promise<void> {
  const entry = entryOf({ step, kind: "response", call: 0 }, storable(run, step, recorded), {
    digest: promptDigest(run.chainOf(prompt)),
  });
  run.keepResponse(entry, usageOf(recorded));
  run.enterStep(step, callsOf(step, itemsOf(recorded)));
  await hooks.after?.(step, recorded);
}

/** A provider may return class instances; they are stored as JSON. */
function storable(run: LiveRun, step: number, recorded: RecordedResponse): RecordedResponse {
  if (isStorable(recorded)) return recorded;
  run.warn(`the response of step ${step} is stored as JSON, because it is not plain data`);
  return JSON.parse(JSON.stringify(recorded)) as RecordedResponse;
}

interface StreamContext {
  readonly include: Included;
  readonly hooks: ModelHooks;
  readonly provider: string;
  readonly modelId: string;
  readonly kept: { readonly request: unknown; readonly response: unknown };
}

function recordedStream(
  run: LiveRun,
  step: number,
  prompt: Prompt,
  { include, hooks, provider, modelId, kept }: StreamContext,
) {
  const parts: StreamPart[] = [];
  const published = new PartPublisher(run, step);
  let characters = 0;
  return new TransformStream<StreamPart, StreamPart>({
    async transform(part, controller) {
      const named =
        part.type === "response-metadata" ? { ...part, id: part.id ?? `${run.id}.${step}` } : part;
      if (part.type !== "raw" || include.rawChunks) parts.push(named);
      characters += lengthOf(part);
      if (characters > MAX_CHARACTERS) throw endless();
      hooks.activity?.(part);
      published.add(named);
      if (part.type === "finish") {
        crashPoint("engine.model.streamed");
        await record(run, step, prompt, { provider, modelId, ...kept, parts: compactParts(parts) }, hooks);
        // The write of the response removes its parts, so none may be written after it.
        await published.close();
      }
      controller.enqueue(named);
    },
  });
}

/** Characters in a part. Reasoning and tool input can be endless just like text. */
function lengthOf({ delta }: StreamPart): number {
  return typeof delta === "string" ? delta.length : 0;
}

function endless(): LazarusError {
  return new LazarusError("RUN_MODEL_ENDLESS", `the model's answer exceeds ${MAX_CHARACTERS} characters`, {
    hint: "set a lower maximum output for the model, or shorten the task",
  });
}

/** Whether a follower waits for a response that its owner may be streaming. */
function isBehind(run: LiveRun): boolean {
  return (
    run.isFollower &&
    !run.recordedOnly &&
    run.limit === undefined &&
    run.get(run.step + 1, "response") === undefined
  );
}

/** The response of a step for a follower: parts while they are published, and the rest when it is recorded. */
function followStream(run: LiveRun, step: number) {
  return { stream: ReadableStream.from(followedParts(run, step)) };
}

async function* followedParts(run: LiveRun, step: number): AsyncGenerator<StreamPart> {
  const shown: StreamPart[] = [];
  let position = 0;
  let epoch: number | undefined;
  for (;;) {
    const next = await run.awaited(async () => {
      const response = run.get(step, "response");
      if (response !== undefined) return { response };
      const live = await readLiveParts(run, step, position);
      // Parts of another owner may differ: the recorded response decides.
      return live !== undefined && live.epoch === (epoch ?? live.epoch) ? { live } : undefined;
    });
    if (next === undefined) return;
    if ("live" in next) {
      const { live } = next;
      epoch = live.epoch;
      position += live.batches.length;
      for (const part of live.batches.flat()) {
        shown.push(part);
        yield part;
      }
      continue;
    }
    const recorded = next.response.value as RecordedResponse;
    const rest = remainder(partsOf(recorded), shown);
    if (rest === undefined) throw restarted(run, step);
    for (const part of rest) {
      if (part.type === "finish") await replay(run, step, recorded);
      yield part;
    }
    return;
  }
}

/** The step is entered at `finish`, as when it happened: ids that the SDK requests earlier belong to the step before. */
function replayStream(run: LiveRun, step: number, recorded: RecordedResponse) {
  const { request, response } = "parts" in recorded ? recorded : { request: undefined, response: undefined };
  const entered = new TransformStream<StreamPart, StreamPart>({
    async transform(part, controller) {
      if (part.type === "finish") await replay(run, step, recorded);
      controller.enqueue(part);
    },
  });
  return {
    stream: streamOf(partsOf(recorded)).pipeThrough(entered),
    ...(request === undefined ? {} : { request }),
    ...(response === undefined ? {} : { response }),
  };
}

function streamOf(parts: readonly StreamPart[]): ReadableStream<StreamPart> {
  return new ReadableStream({
    start(controller) {
      for (const part of parts) controller.enqueue(part);
      controller.close();
    },
  });
}
