// Agents that use every feature of the AI SDK between them, for the comparison of plain and durable ones.
import {
  dynamicTool,
  experimental_createSteering,
  isStepCount,
  jsonSchema,
  Output,
  smoothStream,
  ToolLoopAgent,
  tool,
} from "ai";
import { z } from "zod";
import { type Content, call, type Line, script, stalled } from "./models.ts";

// biome-ignore lint/suspicious/noExplicitAny: settings of agents with different tools.
type Any = Record<string, any>;

/** Builds an agent whose callbacks report to `note`. */
export interface Case {
  readonly lines: readonly Line[];
  readonly settings?: (note: (event: string, data?: unknown) => void) => Any;
  /** Parameters of the call besides the prompt. */
  readonly call?: (note: (event: string, data?: unknown) => void) => Any;
  readonly streamOnly?: boolean;
  /** Fails in the same way. */
  readonly fails?: boolean;
  /** Depends on an object of the caller that ends with its process, so only a finished run is the same again. */
  readonly volatile?: boolean;
  /** A time limit ends it, at a moment that depends on the machine: only how it ends is compared. */
  readonly timed?: boolean;
}

export const add = tool({
  description: "Adds.",
  title: "Adder",
  strict: true,
  inputSchema: z.object({ a: z.number(), b: z.number() }),
  inputExamples: [{ input: { a: 1, b: 2 } }],
  providerOptions: { mock: { cache: true } },
  metadata: { source: "test" },
  execute: ({ a, b }) => a + b,
  toModelOutput: ({ output }) => ({ type: "text", value: `sum ${output}` }),
});
/** Waits until it is aborted. */
const hang = tool({
  inputSchema: z.object({}),
  execute: (_, { abortSignal }) =>
    new Promise<string>((_, reject) => {
      const abort = () => reject(abortSignal!.reason);
      if (abortSignal!.aborted) abort();
      else abortSignal!.addEventListener("abort", abort, { once: true });
    }),
});
const twoSteps: Line[] = [[call("add", { a: 1, b: 2 })], "three"];

/** Names of callbacks that take one event. */
export const CALLBACKS = [
  ...["onStart", "onStepStart", "onLanguageModelCallStart", "onLanguageModelCallEnd", "onStepEnd", "onEnd"],
  ...["onToolExecutionStart", "onToolExecutionEnd", "onStepError", "onError", "onAbort"],
] as const;

function noted(note: (event: string, data?: unknown) => void, names: readonly string[] = CALLBACKS): Any {
  return Object.fromEntries(names.map((name) => [name, (event: unknown) => note(name, event)]));
}

const image: Content = { type: "file", mediaType: "image/png", data: { type: "data", data: "aGVsbG8=" } };
const source: Content = {
  type: "source",
  sourceType: "url",
  id: "s1",
  url: "https://example.org/",
  title: "S",
};

export const CASES: Readonly<Record<string, Case>> = {
  "a tool": { lines: twoSteps, settings: () => ({ tools: { add } }) },
  "call settings": {
    lines: twoSteps,
    settings: () => ({
      ...{
        tools: { add },
        instructions: "be brief",
        temperature: 0.5,
        maxOutputTokens: 99,
        topP: 0.9,
        topK: 4,
      },
      ...{ presencePenalty: 0.1, frequencyPenalty: 0.2, stopSequences: ["x"], seed: 7, reasoning: "low" },
      ...{
        headers: { h: "1" },
        providerOptions: { mock: { deep: { a: 1 } } },
        maxRetries: 1,
        toolChoice: "auto",
      },
      ...{
        toolOrder: ["add"],
        toolCallConcurrency: 1,
        allowSystemInMessages: true,
        experimental_toolCallers: {},
      },
    }),
  },
  callbacks: { lines: twoSteps, settings: (note) => ({ tools: { add }, ...noted(note) }) },
  "callbacks of the call": {
    lines: twoSteps,
    settings: () => ({ tools: { add } }),
    call: (note) =>
      noted(note, [
        "onStart",
        "onStepStart",
        "onToolExecutionStart",
        "onToolExecutionEnd",
        "onStepEnd",
        "onEnd",
      ]),
  },
  "deprecated callbacks": {
    lines: twoSteps,
    settings: (note) => ({
      tools: { add },
      ...noted(note, ["experimental_onStart", "experimental_onStepStart", "onStepFinish", "onFinish"]),
    }),
  },
  "steps prepared and stopped": {
    lines: [[call("add", { a: 1, b: 2 })], [call("add", { a: 3, b: 4 }, "second")], "never"],
    settings: (note) => ({
      tools: { add, other: add },
      activeTools: ["add"],
      stopWhen: [isStepCount(2)],
      prepareStep: ({ stepNumber, messages }: Any) => {
        note("prepareStep", stepNumber);
        if (stepNumber === 0) return undefined;
        const model = script([[call("add", { a: 3, b: 4 }, "second")]], "other-model");
        return { model, temperature: 0.1, messages: [...messages.slice(-2)], instructions: "second" };
      },
    }),
  },
  "everything prepared": {
    lines: [[call("look", {})], "seen"],
    settings: (note) => ({
      tools: {
        other: add,
        look: tool({
          inputSchema: z.object({}),
          contextSchema: z.object({ user: z.string() }),
          execute: (_, { context, ...o }) => note("look", [context, (o as Any).experimental_sandbox?.name]),
        }),
      },
      toolsContext: { look: { user: "u" } },
      runtimeContext: { tenant: "t" },
      prepareStep: ({ stepNumber }: Any) => ({
        ...{ toolChoice: "auto", activeTools: ["look"], toolOrder: ["look"], system: `step ${stepNumber}` },
        ...{ toolsContext: { look: { user: "v" } }, runtimeContext: { tenant: `t${stepNumber}` } },
        ...{ providerOptions: { mock: { step: stepNumber } }, experimental_sandbox: { name: "box" } },
      }),
    }),
  },
  "structured output": {
    lines: ['{"answer": 42}'],
    settings: () => ({ output: Output.object({ schema: z.object({ answer: z.number() }) }) }),
  },
  "output of a choice": {
    lines: ['{"result": "red"}'],
    settings: () => ({ output: Output.choice({ options: ["red", "blue"] }) }),
  },
  "output of any JSON": { lines: ['{"a": [1, null]}'], settings: () => ({ output: Output.json() }) },
  "output of text": { lines: ["plain"], settings: () => ({ output: Output.text() }) },
  "output elements": {
    lines: ['{"elements": [1, 2]}'],
    settings: () => ({ output: Output.array({ element: z.number() }) }),
  },
  "reasoning, sources and files": {
    lines: [[{ type: "reasoning", text: "hmm" }, source, image, { type: "text", text: "done" }]],
  },
  "everything included": {
    lines: twoSteps,
    settings: () => ({
      tools: { add },
      include: { requestBody: true, requestMessages: true, responseBody: true, rawChunks: true },
    }),
  },
  "repaired and refined calls": {
    lines: [[{ ...call("add", {}), input: '{"a": 1, "b": "two"}' }], "three"],
    settings: (note) => ({
      tools: { add },
      repairToolCall: async ({ toolCall }: Any) => {
        note("repair", toolCall.input);
        return { ...toolCall, input: '{"a": 1, "b": 2}' };
      },
      experimental_refineToolInput: { add: (input: Any) => ({ ...input, a: input.a + 10 }) },
    }),
  },
  "invalid calls": {
    lines: [[{ ...call("add", {}), input: "{broken" }, call("nobody", {}, "n")], "sorry"],
    settings: () => ({ tools: { add } }),
  },
  "a tool that throws": {
    lines: [[call("fail", {})], "it failed"],
    settings: (note) => ({
      ...noted(note, ["onToolExecutionStart", "onToolExecutionEnd"]),
      tools: {
        fail: tool({
          inputSchema: z.object({}),
          execute: (): string => {
            throw new TypeError("no such thing");
          },
        }),
      },
    }),
  },
  "a generator": {
    lines: [[call("count", { to: 3 })], "counted"],
    settings: () => ({
      tools: {
        count: tool({
          inputSchema: z.object({ to: z.number() }),
          async *execute({ to }) {
            for (let i = 1; i <= to; i += 1) yield { i };
          },
        }),
      },
    }),
  },
  "schema transforms": {
    lines: [[call("at", { when: "2026-01-02T00:00:00.000Z", tags: ["a", "b"] })], "noted"],
    settings: (note) => ({
      tools: {
        at: tool({
          inputSchema: z.object({
            when: z.string().transform((text) => new Date(text)),
            tags: z.array(z.string()).transform((tags) => new Set(tags)),
          }),
          execute: ({ when, tags }) => {
            note("at", [when.getTime(), tags.size]);
            return { day: when, tags };
          },
          toModelOutput: ({ output }) => ({
            type: "text",
            value: `${output.day.getTime()} ${output.tags.size}`,
          }),
        }),
      },
    }),
  },
  "tool callbacks and context": {
    lines: [[call("look", { q: "x" })], "seen"],
    settings: (note) => ({
      toolsContext: { look: { user: "u" } },
      runtimeContext: { tenant: "t" },
      tools: {
        look: tool({
          inputSchema: z.object({ q: z.string() }),
          contextSchema: z.object({ user: z.string() }),
          onInputStart: () => note("onInputStart"),
          onInputDelta: ({ inputTextDelta }) => note("onInputDelta", inputTextDelta),
          onInputAvailable: ({ input }) => note("onInputAvailable", input),
          execute: ({ q }, { context }) => `${q} ${context.user}`,
        }),
      },
    }),
  },
  "options of an execution": {
    lines: [[call("look", { q: "x" })], "seen"],
    settings: (note) => ({
      toolsContext: { look: { user: "u" } },
      tools: {
        look: tool({
          inputSchema: z.object({ q: z.string() }),
          contextSchema: z.object({ user: z.string() }),
          execute: (_, options) => {
            // The sandbox is an object of the caller: by name.
            const { experimental_sandbox: sandbox, ...rest } = options as Any;
            note("execution", { ...rest, experimental_sandbox: sandbox?.name });
            return "looked";
          },
        }),
      },
    }),
    call: () => ({ experimental_sandbox: { name: "box" }, abortSignal: new AbortController().signal }),
  },
  "a dynamic tool": {
    lines: [[call("any", { x: 1 })], "done"],
    settings: () => ({
      tools: {
        any: dynamicTool({
          inputSchema: jsonSchema({ type: "object" }),
          execute: async (input) => ({ input }),
        }),
      },
    }),
  },
  "parallel calls with one id": {
    lines: [[call("add", { a: 1, b: 1 }, "same"), call("add", { a: 2, b: 2 }, "same")], "both"],
    settings: () => ({ tools: { add } }),
  },
  "approved and denied by policy": {
    lines: [[call("add", { a: 1, b: 2 }, "yes"), call("add", { a: 9, b: 9 }, "no")], "policy"],
    settings: (note) => ({
      tools: { add },
      toolApproval: ({ toolCall }: Any) => {
        note("toolApproval", toolCall.toolCallId);
        return toolCall.toolCallId === "yes" ? "approved" : { type: "denied", reason: "too much" };
      },
    }),
  },
  "approval asked for by the agent": {
    lines: twoSteps,
    settings: () => ({ tools: { add }, toolApproval: { add: "user-approval" } }),
  },
  "approval asked for by the tool": {
    lines: twoSteps,
    settings: () => ({
      experimental_toolApprovalSecret: undefined,
      tools: { add: { ...add, needsApproval: async ({ a }: { a: number }) => a === 1 } },
    }),
  },
  "options of the call": {
    lines: twoSteps,
    settings: () => ({
      tools: { add },
      callOptionsSchema: z.object({ tone: z.string() }),
      prepareCall: ({ options, ...rest }: Any) => ({
        ...rest,
        instructions: `be ${options.tone}`,
        temperature: 0.3,
      }),
    }),
    call: () => ({ options: { tone: "kind" }, timeout: { totalMs: 60_000 } }),
  },
  "a provider that fails once": {
    lines: [[call("add", { a: 1, b: 2 })], Object.assign(new Error("busy"), { isRetryable: true })],
    settings: () => ({ tools: { add }, maxRetries: 0 }),
    fails: true,
  },
  "a cut-off answer": {
    lines: [
      [
        { type: "text", text: "half an" },
        { type: "cut", reason: "length" },
      ],
    ],
  },
  "a tool that takes too long": {
    lines: [[call("hang", {})], "gave up"],
    settings: () => ({ tools: { hang } }),
    call: () => ({ timeout: { toolMs: 5 } }),
  },
  "one tool that takes too long": {
    lines: [[call("hang", {})], "gave up"],
    settings: () => ({ tools: { hang } }),
    call: () => ({ timeout: { tools: { hangMs: 5 } } }),
  },
  "a step that takes too long": {
    lines: [[call("hang", {})], "never"],
    settings: () => ({ tools: { hang } }),
    call: () => ({ timeout: { stepMs: 50 } }),
    timed: true,
    fails: true,
    // A process that continues the run has the whole time again.
    volatile: true,
  },
  "a call that takes too long": {
    lines: [[call("hang", {})], "never"],
    settings: () => ({ tools: { hang } }),
    call: () => ({ timeout: { totalMs: 50 } }),
    timed: true,
    fails: true,
    // A process that continues the run has the whole time again.
    volatile: true,
  },
  "a stream that does not start": {
    lines: [],
    settings: () => ({ model: stalled([]) }),
    call: () => ({ timeout: { firstChunkMs: 5 } }),
    timed: true,
    streamOnly: true,
    fails: true,
  },
  "a stream that stalls": {
    lines: [],
    settings: () => ({ model: stalled(["text-start", "text-delta"]) }),
    call: () => ({ timeout: { chunkMs: 5 } }),
    timed: true,
    streamOnly: true,
    fails: true,
  },
  steering: {
    lines: [[call("add", { a: 1, b: 2 })], "first", "second"],
    settings: () => ({ tools: { add } }),
    call: () => {
      const steering = experimental_createSteering();
      void steering.queue("and now?", { id: "q1" });
      return { experimental_steering: steering };
    },
    volatile: true,
  },
  "transformed stream": {
    lines: ["one two three four"],
    call: () => ({ experimental_transform: smoothStream({ delayInMs: null }) }),
    streamOnly: true,
  },
  telemetry: {
    lines: twoSteps,
    settings: (note) => ({
      tools: { add },
      telemetry: {
        functionId: "f",
        integrations: [
          { onStart: () => note("t.start"), onStepEnd: () => note("t.step"), onEnd: () => note("t.end") },
        ],
      },
    }),
  },
  "a sandbox": {
    lines: [[call("peek", {})], "peeked"],
    settings: () => ({
      tools: {
        peek: tool({
          inputSchema: z.object({}),
          execute: (_, o) => (o as Any).experimental_sandbox?.name ?? "none",
        }),
      },
    }),
    call: () => ({ experimental_sandbox: { name: "box" } }),
  },
  "a download": {
    lines: ["seen"],
    settings: (note) => ({
      experimental_download: async (files: Any[]) => {
        note("download", files.length);
        return files.map(() => ({ data: new Uint8Array([1, 2]), mediaType: "image/png" }));
      },
    }),
    call: () => ({
      prompt: [
        {
          role: "user",
          content: [{ type: "file", mediaType: "image/png", data: new URL("https://example.org/a.png") }],
        },
      ],
    }),
  },
};

/** The plain agent of a case. */
export function agentOf({ lines, settings }: Case, note: (event: string, data?: unknown) => void) {
  const model = script(lines);
  let ids = 0;
  const agent = new ToolLoopAgent({
    id: "case",
    model,
    // In every case: their events show what the SDK knows at each moment.
    ...noted(note),
    ...settings?.(note),
    _internal: { generateId: () => `id-${++ids}`, generateCallId: () => "call-0", now: () => 0 },
  } as never);
  return { agent, model };
}
