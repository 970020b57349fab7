// `durableCall` gives the same results, prompts, callbacks and streams as generateText and streamText, even when it is continued
// after its process has ended. The list of options comes from the signatures of both functions in the installed SDK.
import { readFileSync } from "node:fs";
import { generateText, isStepCount, streamText } from "ai";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { durableCall } from "../../../src/run/engine/durable-call.ts";
import { createMemoryJournal } from "../../../src/run/journal/sqlite.ts";
import { createRunLog } from "../../../src/run/log/run-log.ts";
import { CALL_CASES, CALL_FEATURES } from "./call-cases.ts";
import { CASES, type Case } from "./cases.ts";
import { FEATURES } from "./features.ts";
import { type Any, type Mode, type Observed, observeCall } from "./observe.ts";
import { parametersOf, streamPartsOf } from "./sdk-types.ts";

beforeEach(() => void vi.spyOn(console, "error").mockImplementation(() => {}));
afterEach(() => vi.restoreAllMocks());

// What only agents have.
const { "options of the call": _, ...ofAgents } = CASES;
const cases = Object.entries({ ...ofAgents, ...CALL_CASES }).flatMap(([name, each]) =>
  (["generate", "stream"] as const).flatMap((mode) =>
    each.streamOnly && mode === "generate" ? [] : [[name, mode, each] as const],
  ),
);

const FUNCTIONS: Record<Mode, (settings: Any) => unknown> = { generate: generateText, stream: streamText };

function callOf(mode: Mode, start: (settings: Any) => unknown) {
  return (each: Case) =>
    observeCall(each, mode, (settings) => start({ stopWhen: isStepCount(9), ...settings }));
}

describe("a durable call is indistinguishable from the plain one", () => {
  test.each(cases)("%s, %s", async (_, mode, each) => {
    const expected = await callOf(mode, FUNCTIONS[mode])(each);
    const store = { log: createRunLog(createMemoryJournal()) };
    const durable = (settings: Any) => (durableCall(store, { runId: "run" }, settings) as Any)[mode]();
    const actual = await callOf(mode, durable)(each);
    const compared = ({ result, failure, ...rest }: Observed) => [result, failure, each.timed ? {} : rest];
    expect(compared(actual)).toEqual(compared(expected));
    if (each.fails) return;
    // The same call again, as after a restart: everything is read from the journal.
    const again = await callOf(mode, durable)(each);
    expect([again.failure, again.result]).toEqual([expected.failure, expected.result]);
    expect(again.asked).toEqual([]);
  });
});

const types = readFileSync(new URL("../../../node_modules/ai/dist/index.d.ts", import.meta.url), "utf8");

test("a case has each type of part of a stream", async () => {
  const found = streamPartsOf(types);
  expect(found.length).toBeGreaterThan(25);
  const seen = new Set<string>();
  for (const [, mode, each] of cases) {
    const { parts } = await callOf(mode, FUNCTIONS[mode])(each);
    for (const { type } of parts as { type: string }[]) seen.add(type);
  }
  expect(found.filter((type) => !seen.has(type))).toEqual([]);
});

test.each(["generateText", "streamText"])("every option of %s has a case", (name) => {
  const found = parametersOf(types, name);
  expect(found.length).toBeGreaterThan(40);
  const rows = { ...FEATURES, ...CALL_FEATURES };
  expect(found.filter((each) => !Object.hasOwn(rows, each))).toEqual([]);
  const known = { ...CASES, ...CALL_CASES };
  expect(
    Object.values(CALL_FEATURES).filter((row) => row !== "private" && !Object.hasOwn(known, row)),
  ).toEqual([]);
});
