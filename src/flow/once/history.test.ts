// The record in the workspace and the effect history disagree: which one counts.
import { describe, expect, it } from "vitest";
import type { KnownEffect } from "../../effects/fold.ts";
import { ownerFields } from "../locking/owner.ts";
import { chooseRecord } from "./history.ts";
import type { OnceRecord } from "./record.ts";

const owner = {
  name: null,
  pid: 7,
  processStart: "100",
  bootId: "b",
  host: "h",
  namespace: null,
  container: null,
};
const record = (state: OnceRecord["state"], attempt = 1, exitCode = 0): OnceRecord => ({
  state,
  attempt,
  owner,
  startedAt: "2026-11-15T00:00:00Z",
  commandHash: "d",
  exitCode: state === "ended" ? exitCode : null,
  signal: null,
  document: {},
});
const known = (state: KnownEffect["state"], attempt = 1, pid = 7): KnownEffect => ({
  source: "once",
  id: "i",
  digest: "d",
  state,
  attempt,
  name: "send",
  where: "report",
  what: "",
  key: undefined,
  owner: ownerFields({ ...owner, pid }),
  startedMs: 0,
  timeMs: 0,
  startedAt: 0,
  at: 0,
  end: 0,
});
const end = (exitCode: number) => () => ({ exitCode, signal: null });

describe("of a record and the history", () => {
  it("the history counts when the record is missing, unreadable, older or different", () => {
    for (const found of ["absent", "unreadable", record("started"), record("ended", 1, 3)] as const) {
      const chosen = chooseRecord(found, known("done", 2), end(0));
      expect(chosen).toMatchObject({ state: "ended", attempt: 2, exitCode: 0, owner: { pid: 7 } });
    }
    expect(chooseRecord(record("ended", 1, 3), known("done"), end(0))).toMatchObject({ exitCode: 0 });
    expect(chooseRecord(record("started"), known("started", 1, 8), end(0))).toMatchObject({
      owner: { pid: 8 },
    });
  });

  it("the record counts when it is newer, or the same with more detail", () => {
    for (const [found, effect] of [
      [record("started", 2), known("done")],
      [record("started"), known("started")],
      [record("ended"), known("done")],
    ] as const)
      expect(chooseRecord(found, effect, end(0))).toBe(found);
  });

  it("a start that was withdrawn did not happen, and an end without a result is not readable", () => {
    expect(chooseRecord(record("started"), known("withdrawn"), end(0))).toBe("absent");
    expect(chooseRecord("absent", known("done"), () => undefined)).toBe("unreadable");
  });
});
