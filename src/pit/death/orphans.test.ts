// Which processes belong to a life: by process identity, never by pid alone.
import { describe, expect, test } from "vitest";
import type { ProcessEntry } from "../processes/process-table.ts";
import { findOrphans, type LifeIdentity } from "./orphans.ts";

const boot = "boot-1";
const at = (pid: number, startTime: string) => ({ pid, startTime, bootId: boot });
const life = { epoch: 2, keeper: at(900_001, "100"), agent: at(900_002, "101"), detached: true };
const identity: LifeIdentity = { cell: "/cells/m1", epoch: 2, life, bootId: boot };
const entry = (pid: number, startTime: string, session: number, parent = 1, state = "S"): ProcessEntry => ({
  pid,
  startTime,
  session,
  parent,
  state,
});
const pids = (found: ProcessEntry[]) => found.map(({ pid }) => pid);

describe("a process belongs to a life", () => {
  test("when it is the recorded agent", () => {
    expect(pids(findOrphans(identity, [entry(900_002, "101", 7)]))).toEqual([900_002]);
  });
  test("not when the agent's pid was reused", () => {
    expect(findOrphans(identity, [entry(900_002, "555", 7)])).toEqual([]);
  });
  test("when it is in the keeper's session, even after the keeper is gone", () => {
    expect(pids(findOrphans(identity, [entry(900_010, "102", 900_001)]))).toEqual([900_010]);
  });
  test("not when the keeper's pid, and so the session, was reused", () => {
    expect(findOrphans(identity, [entry(900_001, "999", 900_001), entry(900_010, "1000", 900_001)])).toEqual(
      [],
    );
  });
  test("not by session in the foreground, where it is the terminal's", () => {
    const foreground = { ...identity, life: { ...life, detached: false } };
    expect(findOrphans(foreground, [entry(900_010, "102", 900_001)])).toEqual([]);
  });
  test("not when the life is from an earlier boot", () => {
    expect(findOrphans({ ...identity, bootId: "boot-2" }, [entry(900_002, "101", 900_001)])).toEqual([]);
  });
  test("not when it is a zombie or the keeper itself", () => {
    const dead = entry(900_010, "102", 900_001, 1, "Z");
    expect(findOrphans(identity, [dead, entry(900_001, "100", 900_001)])).toEqual([]);
  });
});
