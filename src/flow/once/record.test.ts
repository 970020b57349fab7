import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { systemProcesses } from "../../platform/process-identity.ts";
import { placeOf } from "../document/workspace.ts";
import { selfOwner } from "../locking/owner.ts";
import { decideOnce, type OnceRecord, oncePaths, resolveTrace, wasKilled } from "./record.ts";

const record = (changes: Partial<OnceRecord>): OnceRecord => ({
  state: "started",
  attempt: 1,
  owner: selfOwner(systemProcesses),
  startedAt: "then",
  commandHash: "h",
  exitCode: null,
  signal: null,
  document: {},
  ...changes,
});
const started = record({});
const ended = (exitCode: number) => record({ state: "ended", exitCode });
const gone = { state: "gone" } as const;

describe("decideOnce", () => {
  it("runs it when it is new", () => {
    expect(decideOnce("absent", "dead", gone, {})).toEqual({ act: "run", attempt: 1 });
  });

  it("replays a command that ended, including failures", () => {
    expect(decideOnce(ended(0), "dead", gone, {})).toMatchObject({ act: "replay" });
    expect(decideOnce(ended(3), "dead", gone, { retryUnknown: true })).toMatchObject({ act: "replay" });
  });

  it("treats a command killed by a signal as unknown", () => {
    const killed = record({ state: "ended", exitCode: 137, signal: "SIGKILL" });
    expect(decideOnce(killed, "dead", gone, {})).toEqual({ act: "unknown" });
    expect(decideOnce(killed, "dead", gone, { retryFailed: true })).toEqual({ act: "unknown" });
    expect(decideOnce(killed, "dead", gone, { retryUnknown: true })).toEqual({ act: "run", attempt: 2 });
  });

  it("retries a failure on request, but not one with the exit code of a signal", () => {
    expect(decideOnce(ended(3), "dead", gone, { retryFailed: true })).toEqual({ act: "run", attempt: 2 });
    expect(decideOnce(ended(0), "dead", gone, { retryFailed: true })).toMatchObject({ act: "replay" });
    expect(decideOnce(ended(143), "dead", gone, { retryFailed: true })).toEqual({ act: "unknown" });
    expect(decideOnce(ended(143), "dead", gone, { retryFailed: true, retryUnknown: true })).toMatchObject({
      act: "run",
    });
    expect([1, 128, 129, 192, 193, 255].map(wasKilled)).toEqual([false, false, true, true, false, false]);
  });

  it("reports busy while the owner or the command is alive, regardless of the request", () => {
    for (const options of [{}, { retryUnknown: true }]) {
      expect(decideOnce(started, "alive", gone, options)).toMatchObject({ act: "busy", why: "owner-alive" });
      expect(decideOnce(started, "dead", { state: "running", pid: 7 }, options)).toMatchObject({
        act: "busy",
        pid: 7,
      });
    }
  });

  it("retries automatically only what provably never started", () => {
    expect(decideOnce(started, "dead", { state: "never-began" }, {})).toEqual({ act: "run", attempt: 2 });
    expect(decideOnce(started, "dead", gone, {})).toEqual({ act: "unknown" });
    expect(decideOnce(started, "dead", gone, { retryUnknown: true })).toEqual({ act: "run", attempt: 2 });
    expect(decideOnce(started, "elsewhere", gone, {})).toMatchObject({ act: "busy", why: "elsewhere" });
  });

  it("treats an unreadable record as unknown, never as absent", () => {
    expect(decideOnce("unreadable", "dead", gone, {})).toEqual({ act: "unknown" });
    expect(decideOnce("unreadable", "dead", gone, { retryUnknown: true })).toMatchObject({ act: "run" });
  });
});

describe("the pid file", () => {
  const directory = mkdtempSync(join(tmpdir(), "lazarus-once-"));
  afterAll(() => rmSync(directory, { recursive: true }));
  const at = (name: string, text?: string) => {
    const path = join(directory, name);
    if (text !== undefined) writeFileSync(path, text);
    return path;
  };
  const startTimeOf = (pid: number) => systemProcesses.identify(pid)?.startTime;

  it("is created if missing, which prevents a late start", () => {
    const path = at("late");
    expect(resolveTrace(path, startTimeOf)).toEqual({ state: "never-began" });
    const late = spawnSync("/bin/sh", ["-c", 'set -C; echo $$ >"$1" || exit 125; echo ran', "x", path], {
      encoding: "utf8",
    });
    expect(late).toMatchObject({ status: 125, stdout: "" });
    expect(readFileSync(path, "utf8")).toBe("void");
    expect(resolveTrace(path, startTimeOf)).toEqual({ state: "never-began" });
  });

  it("identifies a running command, and not a later process with its pid", () => {
    const stat = readFileSync(`/proc/${process.pid}/stat`, "latin1");
    expect(resolveTrace(at("me", `${process.pid} ${stat}`), startTimeOf)).toEqual({
      state: "running",
      pid: process.pid,
    });
    const other = stat.replace(/(\) (?:\S+ ){19})\S+/, "$11");
    expect(resolveTrace(at("other", `${process.pid} ${other}`), startTimeOf)).toEqual({ state: "gone" });
    expect(resolveTrace(at("gone", `${2 ** 22 + 5} x`), startTimeOf)).toEqual({ state: "gone" });
    expect(resolveTrace(at("cut", ""), startTimeOf)).toEqual({ state: "gone" });
  });
});

it("keys never share a record", () => {
  const place = placeOf("/w", "report");
  const names = [
    ["a", "b"],
    ["ab", ""],
    ["", "ab"],
    ["1:a", "b"],
    ["a", "../../x"],
    ["a", "b\0"],
  ].map(([idempotency, key]) => oncePaths(place, idempotency!, key!).record);
  expect(new Set(names).size).toBe(names.length);
  for (const name of names) expect(name).toMatch(/^\/w\/\.lazarus\/once\/report\/[0-9a-f]{40}\.json$/);
});
