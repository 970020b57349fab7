import { describe, expect, test } from "vitest";
import { agentTree, type ProcessEntry, processTree } from "./process-table.ts";

const at = (pid: number, startTime: string) => ({ pid, startTime, bootId: "boot-1" });
const life = { epoch: 2, keeper: at(900_001, "100"), agent: at(900_002, "101"), detached: true };
const entry = (pid: number, startTime: string, session: number, parent = 1): ProcessEntry => ({
  pid,
  startTime,
  session,
  parent,
  state: "S",
});

describe("an agent's tree", () => {
  const helper = entry(900_003, "101", 900_001, 900_001);
  const all = [
    entry(900_001, "100", 900_001),
    entry(900_002, "101", 900_001, 900_001),
    helper,
    entry(900_004, "102", 900_001, helper.pid),
    entry(900_005, "102", 900_001, 900_002),
    entry(900_006, "103", 900_006, 900_001),
    entry(900_007, "104", 900_007, 1),
  ];
  test("contains what it started and what daemonized, not the keeper's helper or other processes", () => {
    const tree = agentTree(life, all, (pid) => pid === helper.pid);
    expect(tree.sort()).toEqual([900_002, 900_005, 900_006]);
  });
  test("contains an agent that is still a fork of its keeper", () => {
    expect(agentTree(life, all, () => true)).toEqual([900_002, 900_005]);
  });
  test("is the agent alone where processes cannot be listed", () => {
    expect(agentTree(life, [])).toEqual([900_002]);
  });
});

test("a tree is a process and its descendants", () => {
  const all = [entry(2, "1", 1, 1), entry(3, "1", 1, 2), entry(4, "1", 1, 3), entry(5, "1", 1, 1)];
  expect(processTree(2, all).sort()).toEqual([2, 3, 4]);
});
