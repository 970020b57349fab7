// docs/cells.md, "Job heartbeats".
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemDisk } from "../platform/disk.ts";
import { createFaultyDisk } from "../testing/faulty-disk.ts";
import { createSimulatedMachine } from "../testing/simulated-machine.ts";
import { type Config, resolveConfig } from "./config.ts";
import { beatJob, checkJobs, classifyJob, parseJobName } from "./job.ts";

const START_MS = 1_800_000_000_500;
const NOW = START_MS / 1000;

let home: string;
let config: Config;
const machine = createSimulatedMachine({ disk: systemDisk, startMs: START_MS });
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-job-"));
  config = resolveConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false }, undefined, {}).config;
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

describe("a job heartbeat", () => {
  it("is <heartbeat_dir>/<job>.last, JSON with job, timestamp, interval_seconds, pid and status", () => {
    const { path, error } = beatJob(machine, config, "backup", {
      intervalSeconds: 3600,
      pid: 42,
      status: "ok",
    });
    expect(error).toBeUndefined();
    expect(path).toBe(join(home, "heartbeats", "backup.last"));
    expect(readFileSync(path, "utf8")).toBe(
      '{\n  "job": "backup",\n  "timestamp": 1800000000.5,\n  "interval_seconds": 3600,\n  "pid": 42,\n  "status": "ok"\n}\n',
    );
  });

  it("defaults to this process and status ok", () => {
    const { path } = beatJob(machine, config, "backup", { intervalSeconds: 60 });
    expect(JSON.parse(readFileSync(path, "utf8"))).toMatchObject({ pid: process.pid, status: "ok" });
  });

  it("keeps fields that other tools added", () => {
    mkdirSync(config.heartbeat_dir);
    writeFileSync(join(config.heartbeat_dir, "backup.last"), '{"host": "a", "ns": 1763250781123456789}');
    const { path } = beatJob(machine, config, "backup", { intervalSeconds: 60 });
    expect(readFileSync(path, "utf8")).toMatch(/"host": "a",\n {2}"ns": 1763250781123456789,/);
  });

  it("never throws: a failing disk is returned as an error", () => {
    for (const code of ["ENOSPC", "EROFS", "EACCES", "EIO", "EMFILE"] as const) {
      const disk = createFaultyDisk(systemDisk, { code, at: () => true });
      const { error } = beatJob({ ...machine, disk }, config, "backup", { intervalSeconds: 60 });
      expect(error?.message).toContain(join(home, "heartbeats", "backup.last"));
    }
  });

  it("never throws: an impossible path is returned as an error", () => {
    writeFileSync(config.heartbeat_dir, "a file");
    const { error } = beatJob(machine, config, "backup", { intervalSeconds: 60 });
    expect(error).toMatchObject({ code: "NOT_FOUND" });
  });

  it("has a name that is safe as a file name", () => {
    expect(parseJobName("nightly-backup.v2")).toBe("nightly-backup.v2");
    for (const name of ["", "../x", "a/b", ".x", "a..b", "\x1b[2J"]) {
      expect(() => parseJobName(name)).toThrow(expect.objectContaining({ code: "USAGE" }));
    }
  });
});

describe("a job is stale", () => {
  const heartbeatOf = (age: number, interval: number) => ({
    timestamp: NOW - age,
    interval_seconds: interval,
  });

  it("when its age exceeds twice its own declared interval, and not before", () => {
    expect(classifyJob("j", heartbeatOf(120, 60), NOW).status).toBe("fresh");
    expect(classifyJob("j", heartbeatOf(120.5, 60), NOW)).toMatchObject({
      status: "stale",
      age_seconds: 120,
      reason: "no heartbeat for 120 s, more than twice its interval of 60 s",
    });
    expect(classifyJob("j", heartbeatOf(120.5, 3600), NOW).status).toBe("fresh");
  });

  it("exactly then, for every age and interval", () => {
    const seconds = fc.integer({ min: 1, max: 10 ** 7 });
    fc.assert(
      fc.property(seconds, seconds, (age, interval) => {
        const found = classifyJob("j", { timestamp: 0, interval_seconds: interval }, age);
        return (found.status === "stale") === age > 2 * interval;
      }),
    );
  });

  it("not when its heartbeat is in the future", () => {
    expect(classifyJob("j", heartbeatOf(-500, 60), NOW)).toMatchObject({ status: "fresh", age_seconds: 0 });
  });

  it.each([
    [{}, "has no timestamp"],
    [{ timestamp: "now", interval_seconds: 60 }, "has no timestamp"],
    [{ timestamp: 1 }, "has no interval_seconds"],
    [{ timestamp: 1, interval_seconds: 0 }, "has no interval_seconds"],
    [{ timestamp: 1, interval_seconds: -5 }, "has no interval_seconds"],
  ])("or unreadable, never fresh, when the heartbeat is %j", (document, reason) => {
    expect(classifyJob("j", document, NOW)).toMatchObject({ status: "unreadable", reason });
  });
});

describe("a check", () => {
  it("lists all jobs sorted by name, and no other files", () => {
    for (const job of ["zeta", "alpha"]) beatJob(machine, config, job, { intervalSeconds: 60 });
    writeFileSync(join(config.heartbeat_dir, ".alpha.last.1.0.tmp"), "");
    writeFileSync(join(config.heartbeat_dir, "README"), "");
    expect(checkJobs(config, NOW).map(({ job }) => job)).toEqual(["alpha", "zeta"]);
  });

  it("without any job is empty, not an error", () => {
    expect(checkJobs(config, NOW)).toEqual([]);
  });

  it("reports a named job without a heartbeat, and every file that is not a heartbeat", () => {
    mkdirSync(join(config.heartbeat_dir, "directory.last"), { recursive: true });
    writeFileSync(join(config.heartbeat_dir, "broken.last"), "{");
    expect(checkJobs(config, NOW).map(({ job, status, reason }) => [job, status, reason])).toEqual([
      ["broken", "unreadable", "not JSON"],
      ["directory", "unreadable", "a directory, not a file"],
    ]);
    expect(checkJobs(config, NOW, ["never"])[0]).toMatchObject({
      status: "unreadable",
      reason: "no such file",
    });
  });
});
