// The plain agent and the durable one give the same results, prompts, callbacks and streams, and so does a durable one that
// is killed at every write and resumed by another process. The list of features comes from the SDK's own types.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Output, type ToolLoopAgent } from "ai";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { durable } from "../../../src/run/engine/durable-agent.ts";
import type { Journal } from "../../../src/run/journal/journal.ts";
import { createMemoryJournal } from "../../../src/run/journal/sqlite.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { CASES, type Case } from "./cases.ts";
import { FEATURES } from "./features.ts";
import { type Any, type Observed, observe, RESULT_FIELDS } from "./observe.ts";
import { processesOf } from "./processes.ts";
import { fieldsOf } from "./sdk-types.ts";

/** streamText prints the error of a failed stream, which one of the cases expects. */
const print = console.error;
beforeEach(() => {
  vi.spyOn(console, "error").mockImplementation((...words) => {
    if (!(words[0] instanceof Error && words[0].message === "busy")) print(...words);
  });
});
afterEach(() => vi.restoreAllMocks());

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
    const compared = ({ result, failure, ...rest }: Observed) => [result, failure, each.timed ? {} : rest];
    expect(compared(actual)).toEqual(compared(expected));
  });
});

/** A process that dies after a number of writes: nothing that it does later counts. */
function dyingAfter(journal: Journal, writes: number): { journal: Journal; died: Promise<void> } {
  let left = writes;
  const { promise: died, resolve } = Promise.withResolvers<void>();
  const dying = {
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
  return { journal: dying as Journal, died };
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
  test.each([
    ["settings of an agent", fieldsOf(types, "type ToolLoopAgentSettings<")],
    ["settings of a model call", fieldsOf(types, "type LanguageModelCallOptions = {")],
    ["settings of a request", fieldsOf(types, "type RequestOptions<")],
    ["fields of a result", fieldsOf(types, "interface GenerateTextResult<")],
    ["fields of a streamed result", fieldsOf(types, "interface StreamTextResult<")],
    ["fields of a tool", fieldsOf(utilities, "type BaseTool<")],
    ["fields of a function tool", fieldsOf(utilities, "type BaseFunctionTool<")],
  ])("%s", (_, found) => {
    expect(found.length).toBeGreaterThan(1);
    expect(found.filter((name) => !Object.hasOwn(FEATURES, name))).toEqual([]);
  });
  test.each([
    ["prepareStep", "type PrepareStepResult<"],
    ["timeout", "type TimeoutConfiguration<"],
    ["include", "type GenerateTextInclude ="],
    ["include", "type StreamTextInclude ="],
  ])("%s: %s", (prefix, start) => {
    const found = fieldsOf(types, start).map((name) => `${prefix}.${name}`);
    expect(found.length).toBeGreaterThan(1);
    expect(found.filter((name) => !Object.hasOwn(FEATURES, name))).toEqual([]);
  });
  test("kinds of output", () => {
    const found = Object.keys(Output).map((name) => `Output.${name}`);
    expect(found.length).toBeGreaterThan(4);
    expect(found.filter((name) => !Object.hasOwn(FEATURES, name))).toEqual([]);
  });
  test("every row names a case, a field of the result, or a test", () => {
    const tests = readdirSync(import.meta.dirname)
      .filter((name) => name.endsWith(".test.ts"))
      .map((name) => readFileSync(join(import.meta.dirname, name), "utf8"))
      .join("\n");
    const isKnown = (name: string, row: string) =>
      row === "field"
        ? name === "_internal" || (RESULT_FIELDS as readonly string[]).includes(name)
        : Object.hasOwn(CASES, row) ||
          (row.startsWith("test: ") && tests.includes(row.slice("test: ".length)));
    expect(Object.entries(FEATURES).filter(([name, row]) => !isKnown(name, row))).toEqual([]);
  });
  // Steps and events are compared as a whole, so a field is compared if a case has it.
  test.each([
    ["a step", fieldsOf(types, "type StepResult<"), "step"],
    ["the performance of a step", fieldsOf(types, "type StepResultPerformance ="), "performance"],
    ["onStart", fieldsOf(types, "type GenerateTextStartEvent<"), "onStart"],
    ["onStepStart", fieldsOf(types, "type GenerateTextStepStartEvent<"), "onStepStart"],
    ["onEnd", fieldsOf(types, "type GenerateTextEndEvent<"), "onEnd"],
    ["onStepError", fieldsOf(types, "type GenerateTextStepErrorEvent<"), "onStepError"],
    [
      "onLanguageModelCallStart",
      fieldsOf(types, "type LanguageModelCallStartEvent ="),
      "onLanguageModelCallStart",
    ],
    ["onLanguageModelCallEnd", fieldsOf(types, "type LanguageModelCallEndEvent<"), "onLanguageModelCallEnd"],
    ["onToolExecutionStart", fieldsOf(types, "type BaseToolExecutionStartFields ="), "onToolExecutionStart"],
    ["onToolExecutionEnd", fieldsOf(types, "type BaseToolExecutionEndFields ="), "onToolExecutionEnd"],
    ["a tool's execution", fieldsOf(utilities, "interface ToolExecutionOptions<"), "execution"],
  ])("a case has each field of %s", async (_, found, where) => {
    expect(found.length).toBeGreaterThan(0);
    const seen = new Set<string>();
    for (const [, mode, each] of cases)
      for (const name of namesIn(await observe(each, mode, (agent) => agent), where)) seen.add(name);
    expect(found.filter((name) => !seen.has(name))).toEqual([]);
  });
});

function namesIn({ result, events }: Observed, where: string): string[] {
  const found = (result as Any).steps;
  const steps: readonly Any[] = Array.isArray(found) ? found : [];
  if (where === "step") return steps.flatMap(Object.keys);
  if (where === "performance") return steps.flatMap(({ performance }) => performance);
  return (events as [string, Any][]).flatMap(([name, event]) => (name === where ? Object.keys(event) : []));
}
