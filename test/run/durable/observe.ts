// Runs an agent or a call of a case and collects what a caller can see of it, as plain data that can be compared.
import type { ToolLoopAgent } from "ai";
import { agentOf, type Case } from "./cases.ts";

// biome-ignore lint/suspicious/noExplicitAny: results of agents with different tools.
export type Any = any;
export type Mode = "generate" | "stream";

export const RESULT_FIELDS = [
  ...[
    "content",
    "text",
    "reasoning",
    "reasoningText",
    "files",
    "sources",
    "toolCalls",
    "toolResults",
    "warnings",
  ],
  ...["finishReason", "rawFinishReason", "usage", "totalUsage", "request", "response", "responseMessages"],
  ...[
    "providerMetadata",
    "steps",
    "finalStep",
    "output",
    "staticToolCalls",
    "dynamicToolCalls",
    "staticToolResults",
  ],
  "dynamicToolResults",
] as const;

/** Plain data without what differs by nature: ids that the SDK makes up, and durations. */
export function plain(value: unknown, seen: unknown[] = []): unknown {
  if (typeof value === "string") return /^(?:id-\d+|run\.\d+\.\w+|call-0|run)$/.test(value) ? "<id>" : value;
  if (typeof value === "function") return "<function>";
  if (typeof value !== "object" || value === null) return value;
  if (seen.includes(value)) return "<cycle>";
  const inside = [...seen, value];
  if (value instanceof Date || value instanceof Uint8Array || value instanceof URL) return value;
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (value instanceof Set) return new Set([...value].map((each) => plain(each, inside)));
  if (Array.isArray(value)) return value.map((each) => plain(each, inside));
  if (value instanceof AbortSignal) return value.aborted ? "aborted" : "not aborted";
  if (isModel(value)) return { provider: value.provider, modelId: value.modelId };
  const fields = Object.entries(value)
    .filter(([name, each]) => each !== undefined && !SKIPPED.has(name))
    .map(([name, each]) => [name, described(name, each)] as const);
  const proto = Object.getPrototypeOf(value);
  const getters =
    proto === Object.prototype || proto === null
      ? []
      : Object.entries(Object.getOwnPropertyDescriptors(proto)).flatMap(([name, { get }]) =>
          get === undefined || SKIPPED.has(name) ? [] : [[name, (value as Any)[name]] as const],
        );
  return Object.fromEntries([...fields, ...getters].map(([name, each]) => [name, plain(each, inside)]));
}
const SKIPPED: ReadonlySet<string> = new Set([
  ...["_internal", "experimental_telemetry", "telemetry", "integrations"],
  ...["runId", "outcome", "experimental_output"],
  // What the getters of a file have computed so far.
  ...["base64Data", "uint8ArrayData"],
]);

function isModel(value: object): value is { provider: string; modelId: string } {
  return (
    "provider" in value && "modelId" in value && ("doGenerate" in value || "specificationVersion" in value)
  );
}

/** `Output.object(…)` and the like, which have functions. */
function isSpecification(value: unknown): value is { name: string } {
  return typeof value === "object" && value !== null && "responseFormat" in value;
}

/** What of a field is compared: of tools, which contain functions, the names; of durations, which were measured. */
function described(name: string, value: unknown): unknown {
  if (name === "tools" && !Array.isArray(value)) return Object.keys(value as object);
  if (name === "toolExecutionMs") return typeof value === "number" ? "<ms>" : Object.keys(value as object);
  if (name === "output" && isSpecification(value)) return value.name;
  if (name === "performance") return Object.keys(value as object).sort();
  return value;
}

export interface Observed {
  readonly result: unknown;
  readonly failure: unknown;
  readonly asked: unknown;
  readonly events: unknown;
  readonly parts: unknown;
}

type Note = (event: string, data?: unknown) => void;

/** Calls an agent of a case, which `wrap` may replace. */
export function observe(
  each: Case,
  mode: Mode,
  wrap: (agent: ToolLoopAgent) => ToolLoopAgent,
  runId?: string,
  resumed = false,
): Promise<Observed> {
  return collect(each, mode, (agent, note) => {
    const call = { prompt: "go", ...each.call?.(note), ...(runId === undefined ? {} : { runId }) } as Any;
    // An object of the first process is gone in the second.
    if (resumed) delete call.experimental_steering;
    return (wrap(agent) as Any)[mode](call);
  });
}

/** Starts a call with the settings of a case. */
export function observeCall(
  each: Case,
  mode: Mode,
  start: (settings: Any) => unknown,
  resumed = false,
): Promise<Observed> {
  return collect(each, mode, (agent, note) => {
    const { id: _, ...settings } = (agent as Any).settings;
    const call = { prompt: "go", ...settings, ...each.call?.(note) };
    if (resumed) delete call.experimental_steering;
    return start(call);
  });
}

async function collect(
  each: Case,
  mode: Mode,
  start: (agent: ToolLoopAgent, note: Note) => unknown,
): Promise<Observed> {
  const events: unknown[][] = [];
  const note = (event: string, data?: unknown) => void events.push([event, plain(data)]);
  const { agent, model } = agentOf(each, note);
  let result: Record<string, unknown> = {};
  let parts: unknown[] = [];
  let failure: unknown;
  try {
    const raw = (await start(agent as ToolLoopAgent, note)) as Any;
    if (mode === "stream") parts = plain(await Array.fromAsync(raw.fullStream)) as unknown[];
    for (const field of RESULT_FIELDS) {
      try {
        result[field] = plain(await raw[field]);
      } catch (error) {
        result[field] = plain(error);
      }
    }
    await raw.outcome;
  } catch (error) {
    failure = plain(error);
    result = {};
  }
  // The end of a streamed response, and of the run, is held back until it is recorded, so what happens in the middle of it, or for
  // telemetry at the same time, may happen before it.
  const late: readonly unknown[] = ["onLanguageModelCallEnd", "t.end"];
  const isEnd = ([name]: readonly unknown[]) => mode === "stream" && late.includes(name);
  const ordered = [...events.filter((event) => !isEnd(event)), ...events.filter(isEnd)];
  return { result, failure, asked: plain(model.asked), events: ordered, parts };
}
