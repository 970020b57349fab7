// One call of a hook: what is recorded, for which life, and what the agent's CLI gets back.
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type Config, resolveConfig } from "../cell/config.ts";
import { systemDisk } from "../platform/disk.ts";
import { createSimulatedMachine } from "../testing/simulated-machine.ts";
import type { HookEvent } from "./adapter.ts";
import { readHookLines } from "./hook-lines.ts";
import { parsePlainEvent } from "./plain-events.ts";
import { type HookCall, receiveHook } from "./receive-hook.ts";
import { resumeNoteFile } from "./session.ts";

let home: string;
let config: Config;
let directory: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-hook-"));
  config = resolveConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false }, undefined, {}).config;
  directory = join(config.run_dir, "agents", "m1");
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const machine = createSimulatedMachine({ disk: systemDisk, startMs: 5000 });
const receive = (call: Partial<HookCall>) =>
  receiveHook(machine, config, {
    mission: "m1",
    epoch: 2,
    adapter: undefined,
    event: undefined,
    input: "",
    ...call,
  });
const setEpoch = (epoch: number) => {
  mkdirSync(directory, { recursive: true });
  writeFileSync(join(directory, "epoch"), String(epoch));
};

describe("a hook", () => {
  it("records an event of the current life", () => {
    setEpoch(2);
    receive({ event: "turn-end" });
    expect(readHookLines(directory, 2)).toEqual([{ at_ms: 5000, epoch: 2, kind: "turn-end" }]);
  });

  it("of an earlier life is ignored", () => {
    setEpoch(3);
    expect(receive({ event: "turn-end" })).toEqual({ events: [], stdout: "" });
    expect(existsSync(join(directory, "hooks.jsonl"))).toBe(false);
  });

  it("passes the name of the event to the adapter, from the argument or the input", () => {
    const seen: string[] = [];
    const parse = (event: string): HookEvent[] => {
      seen.push(event);
      return [];
    };
    const adapter = { hooks: { perRun: null, install: () => [], parse } };
    receive({ adapter, event: "agentStop", input: '{"hook_event_name":"Stop"}' });
    receive({ adapter, input: '{"hook_event_name":"Stop"}' });
    receive({ adapter, input: '{"type":"agent-turn-complete"}' });
    receive({ adapter, input: '{"hookName":"tool_call"}' });
    receive({ adapter, input: "[1]" });
    expect(seen).toEqual(["agentStop", "Stop", "agent-turn-complete", "tool_call", ""]);
    expect(existsSync(directory)).toBe(false);
  });

  it("delivers the resume note once, at the start of the session", () => {
    setEpoch(2);
    writeFileSync(resumeNoteFile(directory), "chapter 3 is done");
    const input = '{"hook_event_name":"SessionStart"}';
    expect(receive({ input: '{"hook_event_name":"Stop"}' }).stdout).toBe("");
    expect(JSON.parse(receive({ input }).stdout)).toEqual({
      hookSpecificOutput: { hookEventName: "SessionStart", additionalContext: "chapter 3 is done" },
    });
    expect(receive({ input }).stdout).toBe("");
  });
});

describe("a plain event", () => {
  it("is checked", () => {
    expect(parsePlainEvent("turn-end", {})).toEqual([{ kind: "turn-end" }]);
    expect(parsePlainEvent("x", { kind: "session", session: "a" })).toEqual([
      { kind: "session", session: "a", transcript: null },
    ]);
    expect(parsePlainEvent("session", {})).toEqual([]);
    expect(parsePlainEvent("failure", { class: "quota", message: "429" })).toEqual([
      { kind: "failure", class: "quota", message: "429" },
    ]);
    expect(parsePlainEvent("failure", { class: "other" })).toEqual([]);
    expect(parsePlainEvent("tool-start", { call: { tool: "bash", id: "c1", command: "a\n b" } })).toEqual([
      { kind: "tool-start", call: { id: "c1", tool: "bash", command: "a\n b", summary: "a b" } },
    ]);
    expect(parsePlainEvent("tool-start", { call: { id: "c1" } })).toEqual([]);
    expect(parsePlainEvent("__proto__", {})).toEqual([]);
  });
});
