// One model call through the AI SDK, and nothing around it: tools are shown to the model but never run by the SDK, so
// that every step is a boundary at which the run can be saved. A call is bounded in time and size whatever the model
// does. The SDK is loaded at first use, since it is an optional peer.
import type {
  LanguageModel,
  LanguageModelUsage,
  ModelMessage,
  ToolSet as SdkTools,
  TextStreamPart,
} from "ai";
import type { Clock } from "../../platform/clock.ts";
import { LazarusError } from "../../platform/errors.ts";
import type { Usage } from "../model/types.ts";
import type { ToolSet } from "./agent.ts";
import { orStopped } from "./stop.ts";

/** One call: what the model is shown, and its bounds. */
export interface ModelCall {
  readonly model: LanguageModel;
  readonly instructions: string | undefined;
  readonly messages: readonly ModelMessage[];
  readonly tools: ToolSet;
  readonly signal: AbortSignal;
  readonly clock: Clock;
  readonly timeoutMs: number;
  readonly maxRetries: number;
  readonly stream: boolean;
  /** Told at every sign of life of a streaming model: words, reasoning, the input of a call. */
  onActivity(): void;
  onText(text: string): void;
}

/** What it said, and what that took. */
export interface ModelAnswer {
  readonly messages: readonly ModelMessage[];
  readonly usage: Usage;
}

/** Characters after which a streaming answer counts as endless. */
const LONGEST_ANSWER = 4_000_000;

type Sdk = typeof import("ai");
let loaded: Promise<Sdk> | undefined;

async function loadSdk(): Promise<Sdk> {
  loaded ??= import("ai");
  try {
    return await loaded;
  } catch (error) {
    loaded = undefined;
    throw new LazarusError(
      "PEER_MISSING",
      "durable runs call models through the AI SDK, which is not installed",
      {
        hint: "npm install ai",
        cause: error,
      },
    );
  }
}

/** Asks the model once. Throws what the provider threw, RUN_TIMEOUT, RUN_MODEL_ENDLESS, or the reason of the stop. */
export async function callModel(call: ModelCall): Promise<ModelAnswer> {
  const sdk = await loadSdk();
  const stop = new AbortController();
  const signal = AbortSignal.any([call.signal, stop.signal]);
  const done = new AbortController();
  void call.clock.sleep(call.timeoutMs, AbortSignal.any([done.signal, signal])).then(() => {
    if (done.signal.aborted || signal.aborted) return;
    stop.abort(
      new LazarusError("RUN_TIMEOUT", `the model did not answer within ${call.timeoutMs} ms`, {
        hint: "raise stepTimeoutMs, or look at the provider's status page",
      }),
    );
  });
  try {
    return await orStopped((call.stream ? streamAnswer : wholeAnswer)(sdk, call, signal, stop), signal);
  } finally {
    done.abort();
  }
}

function options(sdk: Sdk, call: ModelCall, signal: AbortSignal) {
  return {
    model: call.model,
    messages: [...call.messages],
    tools: shownTools(sdk, call.tools),
    abortSignal: signal,
    maxRetries: call.maxRetries,
    // Personas and skills put system text into the transcript of a conversation that began elsewhere.
    allowSystemInMessages: true,
    ...(call.instructions === undefined ? {} : { instructions: call.instructions }),
  };
}

/** Name, description and schema: no `execute`, so that the SDK hands the calls back. */
function shownTools(sdk: Sdk, tools: ToolSet): SdkTools {
  return Object.fromEntries(
    Object.entries(tools).map(([name, { description, inputSchema }]) => [
      name,
      sdk.tool({ ...(description === undefined ? {} : { description }), inputSchema }),
    ]),
  ) as SdkTools;
}

async function wholeAnswer(sdk: Sdk, call: ModelCall, signal: AbortSignal): Promise<ModelAnswer> {
  const result = await sdk.generateText(options(sdk, call, signal));
  return { messages: result.responseMessages ?? result.response.messages, usage: usageOf(result.usage) };
}

async function streamAnswer(
  sdk: Sdk,
  call: ModelCall,
  signal: AbortSignal,
  stop: AbortController,
): Promise<ModelAnswer> {
  let failure: unknown;
  let length = 0;
  const result = sdk.streamText({
    ...options(sdk, call, signal),
    onError: ({ error }) => {
      failure ??= error;
    },
  });
  for await (const part of result.fullStream) {
    const said = lengthOf(part);
    if (said > 0) call.onActivity();
    length += said;
    if (part.type === "text-delta") call.onText(part.text);
    if (length > LONGEST_ANSWER) {
      const endless = new LazarusError(
        "RUN_MODEL_ENDLESS",
        `the model has said ${length} characters without an end`,
        {
          hint: "lower the model's maximum output, or shorten the task",
        },
      );
      stop.abort(endless);
      throw endless;
    }
  }
  if (failure !== undefined) throw failure;
  return { messages: (await result.response).messages, usage: usageOf(await result.usage) };
}

/** How much of an answer a part is: reasoning and the input of a call can go on for ever as words can. */
function lengthOf(part: TextStreamPart<SdkTools>): number {
  switch (part.type) {
    case "text-delta":
    case "reasoning-delta":
      return part.text.length;
    case "tool-input-delta":
      return part.delta.length;
    default:
      return 0;
  }
}

/** A provider may count in anything; a store takes whole numbers. */
function usageOf(usage: LanguageModelUsage | undefined): Usage {
  const count = (value: unknown) =>
    typeof value === "number" && Number.isFinite(value) ? Math.max(0, Math.round(value)) : 0;
  return { inputTokens: count(usage?.inputTokens), outputTokens: count(usage?.outputTokens) };
}
