import { describe, expect, it } from "vitest";
import {
  checkDocument,
  type FlowDocument,
  formatIso,
  isExpired,
  parseIsoMs,
  withCheckpointHash,
} from "./document.ts";

const flow: FlowDocument = withCheckpointHash({
  schemaVersion: "1.0",
  workflowId: "report",
  agentId: "anna",
  status: "in_progress",
  currentStep: "fetch",
  completedSteps: [],
  remainingSteps: ["write"],
  idempotencyKey: "k",
  updatedAt: "2026-11-15T23:53:01+00:00",
});
const reason = (changes: object, stem = "report") => {
  const verdict = checkDocument({ ...flow, ...changes }, stem);
  return verdict.ok ? "ok" : `${verdict.why}: ${verdict.reason}`;
};

describe("a flow file is valid", () => {
  it("with its hash, and without one", () => {
    expect(reason({})).toBe("ok");
    const { checkpointHash: _, ...unhashed } = flow;
    expect(checkDocument(unhashed, "report").ok).toBe(true);
  });

  it.for([
    [{ schemaVersion: undefined }, "schema: has a schemaVersion"],
    [{ schemaVersion: 1 }, "schema: has a schemaVersion"],
    [{ schemaVersion: "2.0" }, "newer: has schemaVersion 2.0"],
    [{ schemaVersion: "1.1" }, "newer: "],
    [{ agentId: 5 }, "schema: has a field agentId that is not a string"],
    [{ status: "paused" }, "schema: has a status"],
    [{ completedSteps: [1] }, "schema: has a field completedSteps that is not a list of strings"],
    [{ remainingSteps: "all" }, "schema: has a field remainingSteps that is not a list of strings"],
    [{ notes: {} }, "schema: has a field notes that is not a string"],
    [{ updatedAt: "yesterday" }, "schema: has a field updatedAt that is not an ISO 8601 time"],
    [{ expiresAt: "soon" }, "schema: has a field expiresAt that is not an ISO 8601 time"],
    [{ checkpointHash: 1 }, "schema: has a field checkpointHash that is not a string"],
    [{ currentStep: "send" }, "hash: "],
    [{ extra: 1 }, "hash: "],
  ] as const)("unless %j: %s", ([changes, expected]) => {
    expect(reason({ ...changes })).toMatch(
      expected === "schema: has a schemaVersion" ? /^schema: has (a|no) schemaVersion/ : expected,
    );
  });

  it("only under its own name: a copy would repeat the work", () => {
    expect(reason({}, "report-copy")).toContain("has a different workflowId");
  });

  it("not when it is not an object", () => {
    for (const value of [null, 5, "x", []]) expect(checkDocument(value, "report").ok).toBe(false);
  });
});

describe("times", () => {
  it.for([
    ["2026-11-15T23:53:01.123456+00:00", "2026-11-15T23:53:01.123Z"],
    ["2026-11-15T23:53:01Z", "2026-11-15T23:53:01.000Z"],
    ["2026-11-15T23:53:01", "2026-11-15T23:53:01.000Z"],
    ["2026-11-15 23:53", "2026-11-15T23:53:00.000Z"],
    ["2026-11-15T23:53:01+02:00", "2026-11-15T21:53:01.000Z"],
    ["2026-11-15T23:53:01-0530", "2026-11-16T05:23:01.000Z"],
    ["2026-11-15", "2026-11-15T00:00:00.000Z"],
  ])("%s is %s", ([text, expected]) => {
    expect(new Date(parseIsoMs(text!)!).toISOString()).toBe(expected);
  });

  it.for(["", "soon", "2026-13-01T00:00:00Z", "2026-11-15T25:00:00Z", "15.11.2026", "1"])(
    "%j is not a time",
    (text) => {
      expect(parseIsoMs(text)).toBeUndefined();
    },
  );

  it("are written in a form that old Python versions read", () => {
    expect(formatIso(Date.UTC(2026, 10, 15, 23, 53, 1, 7))).toBe("2026-11-15T23:53:01.007+00:00");
  });

  it("expire at the exact time", () => {
    const expiresAt = "2026-11-15T23:53:01+00:00";
    const moment = parseIsoMs(expiresAt)!;
    expect(isExpired({ ...flow, expiresAt }, moment - 1)).toBe(false);
    expect(isExpired({ ...flow, expiresAt }, moment)).toBe(true);
    expect(isExpired(flow, moment)).toBe(false);
    expect(isExpired({ ...flow, expiresAt: null }, moment)).toBe(false);
  });
});
