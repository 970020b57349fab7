// The plain agent and the durable one give the same results, prompts, callbacks and streams, and so does a durable one that
// is killed at every write and resumed by another process. The list of features comes from the SDK's own types.
import { readFileSync } from "node:fs";
import type { ToolLoopAgent } from "ai";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import type { Journal } from "../../../src/run/journal/journal.ts";
import { createMemoryJournal } from "../../../src/run/journal/memory.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { agentOf, CASES, type Case } from "./cases.ts";
import { FEATURES } from "./features.ts";
import { processesOf } from "./processes.ts";

/** streamText prints the error of a failed stream, which one of the cases expects. */
const print = console.error;
beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation((...words) => {
    if (!(words[0] instanceof Error && words[0].message === "busy")) print(...words);
  });
});
afterEach(() => vi.restoreAllMocks());

// biome-ignore lint/suspicious/noExplicitAny: results of agents with different tools.
type Any = any;
type Mode = "generate" | "stream";

const RESULT_FIELDS = [
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
function plain(value: unknown, seen: unknown[] = []): unknown {
  if (typeof value === "string") return /^(?:id-\d+|run\.\d+\.\w+|call-0|run)$/.test(value) ? "<id>" : value;
  if (typeof value === "function") return "<function>";
  if (typeof value !== "object" || value === null) return value;
  if (seen.includes(value)) return "<cycle>";
  const inside = [...seen, value];
  if (value instanceof Date || value instanceof Uint8Array || value instanceof URL) return value;
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (value instanceof Set) return new Set([...value].map((each) => plain(each, inside)));
  if (Array.isArray(value)) return value.map((each) => plain(each, inside));
  const fields = Object.entries(value).filter(([name, each]) => each !== undefined && !SKIPPED.has(name));
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
  ...[
    "performance",
    "abortSignal",
    "toolExecutionMs",
    "model",
    "tools",
    "_internal",
    "experimental_telemetry",
  ],
  ...["telemetry", "integrations", "stepTools", "output", "runId", "outcome", "experimental_output"],
]);

interface Observed {
  readonly result: unknown;
  readonly failure: unknown;
  readonly asked: unknown;
  readonly events: unknown;
  readonly parts: unknown;
}

async function observe(
  each: Case,
  mode: Mode,
  wrap: (agent: ToolLoopAgent) => ToolLoopAgent,
  runId?: string,
  resumed = false,
) {
  const events: unknown[] = [];
  const note = (event: string, data?: unknown) => void events.push([event, plain(data)]);
  const { agent, model } = agentOf(each, note);
  const call = { prompt: "go", ...each.call?.(note), ...(runId === undefined ? {} : { runId }) } as Any;
  // An object of the first process is gone in the second.
  if (resumed) delete call.experimental_steering;
  const used = wrap(agent as ToolLoopAgent) as Any;
  let result: Record<string, unknown> = {};
  let parts: unknown[] = [];
  let failure: unknown;
  try {
    const raw = await used[mode](call);
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
  return { result, failure, asked: plain(model.asked), events, parts } satisfies Observed;
}

const cases = Object.entries(CASES).flatMap(([name, each]) =>
  (["generate", "stream"] as const).flatMap((mode) =>
    each.streamOnly && mode === "generate" ? [] : [[name, mode, each] as const],
  ),
);

describe("a durable agent is indistinguishable from the plain one", () => {
  test.each(cases)("%s, %s", async (_, mode, each) => {
    const expected = await observe(each, mode, (agent) => agent);
    const store = { log: createRunLog(createMemoryJournal()) };
    const actual = await observe(each, mode, (agent) => durable(agent, { store, recover: false }), "run");
    expect(actual).toEqual(expected);
  });
});

/** A process that dies after so many writes: nothing it does later counts. */
function dyingAfter(journal: Journal, writes: number): { journal: Journal; died: Promise<void> } {
  let left = writes;
  const { promise: died, resolve } = Promise.withResolvers<void>();
  const mortal = {
    ...journal,
    write: (write: Parameters<Journal["write"]>[0]) => {
      left -= 1;
      if (left >= 0) return journal.write(write);
      resolve();
      return new Promise<never>(() => {});
    },
    // Otherwise it would notice during another test that it has lost its run.
    renewLease: (...lease: Parameters<Journal["renewLease"]>) =>
      left >= 0 ? journal.renewLease(...lease) : new Promise<never>(() => {}),
  };
  return { journal: mortal as Journal, died };
}

describe("a run that is killed at any write and resumed gives the same result", () => {
  test.each(cases)("%s, %s", async (_, mode, each) => {
    const expected = await observe(each, mode, (agent) => agent);
    for (let writes = 0; writes < 20; writes += 1) {
      const journal = createMemoryJournal();
      const first = dyingAfter(journal, writes);
      const dead = { log: createRunLog(first.journal, { machine: processesOf(1) }) };
      const effects = effectsOf(each);
      const attempt = observe(
        each,
        mode,
        (agent) => durable(agent, { store: dead, effects, recover: false } as Any),
        "run",
      );
      const ended = await Promise.race([attempt.then(() => true), first.died.then(() => false)]);
      const store = { log: createRunLog(journal, { machine: processesOf(2) }) };
      const resumed = (agent: ToolLoopAgent) => durable(agent, { store, effects, recover: false } as Any);
      const actual = await observe(each, mode, resumed, "run", true);
      if (ended && each.fails) return;
      if (!ended && each.volatile) continue;
      expect([actual.failure, actual.result]).toEqual([expected.failure, expected.result]);
      if (ended) return;
    }
    throw new Error("the run never ended");
  });
});

function effectsOf(each: Case): Record<string, "idempotent"> {
  const names = Object.keys((each.settings?.(() => {}).tools ?? {}) as object);
  return Object.fromEntries(names.map((name) => [name, "idempotent"]));
}

describe("every feature of the SDK's types has a row", () => {
  const types = readFileSync(new URL("../../../node_modules/ai/dist/index.d.ts", import.meta.url), "utf8");
  const utilities = readFileSync(
    new URL("../../../node_modules/@ai-sdk/provider-utils/dist/index.d.ts", import.meta.url),
    "utf8",
  );
  const block = (text: string, start: string) => {
    const from = text.indexOf(start);
    if (from < 0) throw new Error(`the SDK has no ${start}`);
    const lines = text.slice(from).split("\n").slice(1);
    return lines.slice(
      0,
      lines.findIndex((line) => /^\}/.test(line)),
    );
  };
  const fields = (lines: readonly string[]) =>
    lines.flatMap((line) => /^ {2}(?:readonly )?(\w+)\??[:(<]/.exec(line)?.[1] ?? []);
  test.each([
    ["settings of an agent", fields(block(types, "type ToolLoopAgentSettings<"))],
    ["settings of a model call", fields(block(types, "type LanguageModelCallOptions = {"))],
    ["settings of a request", fields(block(types, "type RequestOptions<"))],
    ["fields of a result", fields(block(types, "interface GenerateTextResult<"))],
    ["fields of a streamed result", fields(block(types, "interface StreamTextResult<"))],
    ["fields of a tool", fields(block(utilities, "type BaseTool<"))],
    ["fields of a function tool", fields(block(utilities, "type BaseFunctionTool<"))],
  ])("%s", (_, found) => {
    expect(found.length).toBeGreaterThan(1);
    expect(found.filter((name) => !Object.hasOwn(FEATURES, name))).toEqual([]);
  });
  test("every row names a case, a field or a test", () => {
    const known = new Set([...Object.keys(CASES), ...RESULT_FIELDS, "field", "test"]);
    const unknown = Object.entries(FEATURES).filter(([, row]) => !known.has(row.split(":")[0]!));
    expect(unknown).toEqual([]);
  });
});
