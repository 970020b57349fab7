// Whether an agent has finished, from what its hooks and its transcript say.
import { expect, test } from "vitest";
import type { HookEvent, Position } from "../../agents/adapter.ts";
import { findAdapter } from "../../agents/adapters.ts";
import { summarizeHooks } from "../../agents/hook-lines.ts";
import { callsInFlight, reportedFinished } from "./life-report.ts";

const finished: Position = { turn: 3, last: null, open: [], isFinished: true, damagedLines: 0 };
const call = { id: null, tool: "sh", summary: "git push", command: "git push" };

function said(name: string, exitCode: number | null, events: readonly HookEvent[], turnBefore = 0): boolean {
  const invocation = { isHeadless: true, prompt: "x", session: null, isUtility: false };
  const agent = { adapter: findAdapter(name)!, line: { prefix: [], program: name, args: [] }, invocation };
  const hooks = summarizeHooks(events.map((event, at_ms) => ({ at_ms, epoch: 1, ...event })));
  return reportedFinished({ agent, hooks, position: finished }, turnBefore, exitCode);
}

test("has finished if a hook reports the end of a turn, but not with an open call or a failure", () => {
  expect(said("gemini", null, [{ kind: "prompt" }, { kind: "turn-end" }])).toBe(true);
  expect(said("claude", 0, [{ kind: "tool-start", call }])).toBe(false);
  expect(said("claude", 1, [{ kind: "failure", class: "overload", message: "529" }])).toBe(false);
});

test("has finished if its transcript says so and grew in this life", () => {
  expect(said("claude", null, [])).toBe(true);
  expect(said("claude", null, [], 3)).toBe(false);
});

test("a transcript that does not show cut-off calls counts only without hooks and with exit code 0", () => {
  expect(said("gemini", 0, [])).toBe(true);
  expect(said("gemini", null, [])).toBe(false);
  expect(said("gemini", 0, [{ kind: "prompt" }])).toBe(false);
});

test("a call is in flight if it has no end, or if its result never reached the transcript", () => {
  const named = (id: string) => ({ ...call, id });
  const events: HookEvent[] = [
    { kind: "tool-start", call: named("a") },
    { kind: "tool-end", call: named("a") },
    { kind: "tool-start", call: named("b") },
  ];
  const hooks = summarizeHooks(events.map((event, at_ms) => ({ at_ms, epoch: 1, ...event })));
  const ids = (open: Position["open"]) =>
    callsInFlight({ hooks, position: { ...finished, open } }).map(({ id }) => id);
  expect(ids([])).toEqual(["b"]);
  expect(ids([named("b")])).toEqual(["b"]);
  expect(ids([named("a")])).toEqual(["b", "a"]);
});

test("a call that has ended but is not in the transcript was lost", () => {
  const events: HookEvent[] = [
    { kind: "tool-start", call },
    { kind: "tool-end", call },
  ];
  const hooks = summarizeHooks(events.map((event, at_ms) => ({ at_ms, epoch: 1, ...event })));
  const position = { ...finished, last: { ...call, id: "1", summary: "make", command: "make" } };
  expect(callsInFlight({ hooks, position })).toEqual([call]);
  expect(callsInFlight({ hooks, position: { ...finished, last: { ...call, id: "2" } } })).toEqual([]);
});

test("a call that has ended was not lost if the transcript shows the one after it", () => {
  const next = { ...call, summary: "make", command: "make" };
  const events: HookEvent[] = [
    { kind: "tool-start", call },
    { kind: "tool-end", call },
    { kind: "tool-start", call: next },
  ];
  const hooks = summarizeHooks(events.map((event, at_ms) => ({ at_ms, epoch: 1, ...event })));
  const last = { ...next, id: "2" };
  expect(callsInFlight({ hooks, position: { ...finished, last, open: [last] } })).toEqual([next]);
});
