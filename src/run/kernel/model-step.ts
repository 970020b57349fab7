// One model call through the AI SDK. The model sees the tools, but the SDK never executes them, so that every step is a
// boundary at which the run can be saved. A call is bounded in time and size. The SDK is loaded on first use, since it
// is an optional peer dependency.
import type {
  LanguageModel,
  LanguageModelUsage,
  ModelMessage,
  ToolSet as SdkTools,
  TextStreamPart,
} from "ai";
import type { Clock } from "../../platform/clock.ts";
import { LazarusError } from "../../platform/errors.ts";
import { orStopped } from "../model/stop.ts";
import type { Usage } from "../model/types.ts";
import type { ToolSet } from "./agent.ts";

/** The input and limits of one model call. */
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
  /** Called for every part of a streamed answer: text, reasoning, tool input. */
  onActivity(): void;
  onText(text: string): void;
}

/** The answer of one model call. */
export interface ModelAnswer {
  readonly messages: readonly ModelMessage[];
  readonly usage: Usage;
}

/** A streamed answer of more characters is aborted as endless. */
const MAX_ANSWER_CHARACTERS = 4_000_000;

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
      "the AI SDK is not installed; durable runs need it to call models",
      {
        hint: "npm install ai",
        cause: error,
      },
    );
  }
}

/** Calls the model once. Throws the provider's error, RUN_TIMEOUT, RUN_MODEL_ENDLESS, or the reason of a stop. */
export async function callModel(call: ModelCall): Promise<ModelAnswer> {
  const sdk = await loadSdk();
  const stop = new AbortController();
  const signal = AbortSignal.any([call.signal, stop.signal]);
  const done = new AbortController();
  void call.clock.sleep(call.timeoutMs, AbortSignal.any([done.signal, signal])).then(() => {
    if (done.signal.aborted || signal.aborted) return;
    stop.abort(
      new LazarusError("RUN_TIMEOUT", `the model did not answer within ${call.timeoutMs} ms`, {
        hint: "raise stepTimeoutMs, or check the provider's status page",
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
    tools: sdkTools(sdk, call.tools),
    abortSignal: signal,
    maxRetries: call.maxRetries,
    // An existing conversation may contain system messages from personas and skills.
    allowSystemInMessages: true,
    ...(call.instructions === undefined ? {} : { instructions: call.instructions }),
  };
}

/** Without `execute`, so that the SDK returns the calls instead of running them. */
function sdkTools(sdk: Sdk, tools: ToolSet): SdkTools {
  return Object.fromEntries(
    Object.entries(tools).map(([name, { description, inputSchema }]) => [
      name,
      sdk.tool({ ...(description === undefined ? {} : { description }), inputSchema }),
    ]),
  ) as SdkTools;
}

async function wholeAnswer(sdk: Sdk, call: ModelCall, signal: AbortSignal): Promise<ModelAnswer> {
  const result = await sdk.generateText(options(sdk, call, signal));
  refuseCutOff(result.finishReason, result.text);
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
    const added = lengthOf(part);
    if (added > 0) call.onActivity();
    length += added;
    if (part.type === "text-delta") call.onText(part.text);
    if (length > MAX_ANSWER_CHARACTERS) {
      const endless = new LazarusError(
        "RUN_MODEL_ENDLESS",
        `the model's answer exceeds ${MAX_ANSWER_CHARACTERS} characters`,
        {
          hint: "set a lower maximum output for the model, or shorten the task",
        },
      );
      stop.abort(endless);
      throw endless;
    }
  }
  if (failure !== undefined) throw failure;
  refuseCutOff(await result.finishReason, await result.text);
  return { messages: (await result.response).messages, usage: usageOf(await result.usage) };
}

/** An answer that was cut off before its first word is a failure, not an empty answer. */
function refuseCutOff(finishReason: string, text: string): void {
  if ((finishReason !== "length" && finishReason !== "content-filter") || text !== "") return;
  throw new LazarusError(
    "RUN_MODEL_FAILED",
    `the model gave no answer: it stopped because of ${finishReason}`,
    {
      hint: finishReason === "length" ? "raise the model's maximum output" : "rephrase the task",
    },
  );
}

/** Characters in a part. Reasoning and tool input can be endless just like text. */
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

/** Providers report fractions, NaN or nothing; a store needs non-negative integers. */
function usageOf(usage: LanguageModelUsage | undefined): Usage {
  const count = (value: unknown) =>
    typeof value === "number" && Number.isFinite(value) ? Math.max(0, Math.round(value)) : 0;
  return { inputTokens: count(usage?.inputTokens), outputTokens: count(usage?.outputTokens) };
}
