// Hook lines: reading back the lines of one life, even from a truncated file, and what the lines mean.
import { spawnSync } from "node:child_process";
import { appendFileSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemDisk } from "../platform/disk.ts";
import type { HookEvent, ToolCall } from "./adapter.ts";
import {
  appendHookLine,
  checkHookLines,
  type HookLine,
  hasReported,
  readHookLines,
  readHookSession,
  summarizeHooks,
} from "./hook-lines.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-hooks-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const machine = { disk: systemDisk };
const at = (at_ms: number, event: HookEvent, epoch = 1): HookLine => ({ at_ms, epoch, ...event });
const call = (id: string | null, command: string): ToolCall => ({
  id,
  tool: "Bash",
  summary: command,
  command,
});
const start = (id: string | null, command: string): HookEvent => ({
  kind: "tool-start",
  call: call(id, command),
});
const end = (id: string | null, command: string): HookEvent => ({
  kind: "tool-end",
  call: call(id, command),
});
const summary = (...events: HookEvent[]) => summarizeHooks(events.map((event, index) => at(index, event)));

describe("the file", () => {
  it("returns the lines of one life in order, and is private", () => {
    appendHookLine(machine, directory, at(1, { kind: "prompt" }, 1));
    appendHookLine(machine, directory, at(2, { kind: "prompt" }, 2));
    appendHookLine(machine, directory, at(3, { kind: "turn-end" }, 2));
    expect(readHookLines(directory, 2)).toEqual([
      { at_ms: 2, epoch: 2, kind: "prompt" },
      { at_ms: 3, epoch: 2, kind: "turn-end" },
    ]);
    expect(statSync(join(directory, "hooks.jsonl")).mode & 0o777).toBe(0o600);
  });

  it("is empty where no hook has reported", () => {
    expect(readHookLines(directory, 1)).toEqual([]);
    expect(readHookLines(join(directory, "absent"), 1)).toEqual([]);
  });

  it.each(["mkfifo", "mkdir", "ln -s /dev/zero"])("is empty when it was replaced (%s)", (replace) => {
    const [program = "", ...args] = [...replace.split(" "), join(directory, "hooks.jsonl")];
    expect(spawnSync(program, args).status).toBe(0);
    expect(readHookLines(directory, 1)).toEqual([]);
    expect(hasReported(directory, 1)).toBe(false);
    expect(readHookSession(directory, 1)).toBeNull();
    expect(checkHookLines(directory, 1)).toMatchObject({ isUrgent: false });
  });

  it("says whether a life has reported, even in the older of two files", () => {
    appendHookLine(machine, directory, at(1, { kind: "prompt" }, 1));
    appendHookLine(machine, directory, at(2, { kind: "prompt" }, 2), 1);
    expect([1, 2, 3].map((epoch) => hasReported(directory, epoch))).toEqual([true, true, false]);
  });

  it("skips a line that was cut off, and keeps the next one whole", () => {
    appendHookLine(machine, directory, at(1, { kind: "prompt" }));
    appendFileSync(join(directory, "hooks.jsonl"), '{"at_ms":2,"epoch":1,"kind":"turn-');
    expect(readHookLines(directory, 1).map((line) => line.at_ms)).toEqual([1]);
    appendHookLine(machine, directory, at(3, { kind: "turn-end" }));
    expect(readHookLines(directory, 1).map((line) => line.at_ms)).toEqual([1, 3]);
  });

  it("skips lines that are not hook lines", () => {
    const lines = ["[]", "null", '{"kind":"prompt"}', '{"at_ms":1,"epoch":1,"kind":"x"}'];
    writeFileSync(
      join(directory, "hooks.jsonl"),
      [...lines, '{"at_ms":1,"epoch":1,"kind":"tool-end"}', ""].join("\n"),
    );
    expect(readHookLines(directory, 1)).toEqual([]);
  });

  it("stays bounded and keeps the newest lines", () => {
    const limit = 1000;
    for (let index = 0; index < 100; index += 1)
      appendHookLine(machine, directory, at(index, { kind: "prompt" }), limit);
    const sizes = readdirSync(directory).map((name) => statSync(join(directory, name)).size);
    expect(Math.max(...sizes)).toBeLessThan(limit + 100);
    const times = readHookLines(directory, 1).map((line) => line.at_ms);
    expect(times.length).toBeGreaterThan(20);
    expect(times).toEqual(Array.from(times, (_, index) => 100 - times.length + index));
  });

  it("cuts a command that contains a whole file", () => {
    appendHookLine(machine, directory, at(1, start("a", "x".repeat(100_000))));
    expect(statSync(join(directory, "hooks.jsonl")).size).toBeLessThan(20_000);
    expect(readHookLines(directory, 1)).toHaveLength(1);
  });
});

describe("what the lines mean", () => {
  it("nothing when there are none", () => {
    expect(summary()).toEqual({
      session: null,
      transcript: null,
      openCalls: [],
      endedCall: null,
      isFinished: false,
      failure: null,
      lastEventMs: null,
    });
  });

  it("names the newest session", () => {
    const first: HookEvent = { kind: "session", session: "a", transcript: "/a" };
    expect(summary(first, { kind: "session", session: "b", transcript: null })).toMatchObject({
      session: "b",
      transcript: null,
      lastEventMs: 1,
    });
  });

  it("identifies the call in flight by its id", () => {
    const { openCalls } = summary(start("a", "one"), start("b", "one"), end("a", "one"));
    expect(openCalls).toEqual([call("b", "one")]);
  });

  it("matches calls without an id by their summary, then by their tool", () => {
    expect(
      summary(start(null, "one"), start(null, "two"), end(null, "two")).openCalls.map((each) => each.summary),
    ).toEqual(["one"]);
    expect(summary(start(null, "one"), end(null, "")).openCalls).toEqual([]);
  });

  it("an end without a start changes nothing", () => {
    expect(summary(start("a", "one"), end("b", "one")).openCalls).toHaveLength(1);
  });

  it("is finished after the end of a turn, until something starts", () => {
    expect(summary({ kind: "prompt" }, { kind: "turn-end" }).isFinished).toBe(true);
    expect(summary({ kind: "turn-end" }, { kind: "session-end", reason: "other" }).isFinished).toBe(true);
    expect(summary({ kind: "turn-end" }, { kind: "prompt" }).isFinished).toBe(false);
    expect(summary({ kind: "turn-end" }, start("a", "one")).isFinished).toBe(false);
    expect(summary({ kind: "prompt" }, { kind: "session-end", reason: "other" }).isFinished).toBe(false);
  });

  it("a denied call does not stay open beyond its turn", () => {
    expect(summary(start("a", "one"), { kind: "turn-end" }).openCalls).toEqual([]);
  });

  it("has failed until something starts", () => {
    const failure: HookEvent = { kind: "failure", class: "quota", message: "429" };
    expect(summary({ kind: "prompt" }, failure)).toMatchObject({
      isFinished: false,
      failure: { class: "quota", message: "429" },
    });
    expect(summary(failure, { kind: "prompt" }).failure).toBeNull();
    expect(summary(failure, { kind: "turn-end" }).failure).toBeNull();
  });
});
