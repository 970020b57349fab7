// Which processes belong to a life: by who they are, never by a pid alone.
import { describe, expect, test } from "vitest";
import { agentTree, findSurvivors, type LifeMarks, type Sighting, treeOf } from "./orphans.ts";

const boot = "boot-1";
const at = (pid: number, startTime: string) => ({ pid, startTime, bootId: boot });
const life = { epoch: 2, keeper: at(900_001, "100"), agent: at(900_002, "101"), detached: true };
const marks: LifeMarks = { cell: "/cells/m1", epoch: 2, life, bootId: boot };
const seen = (pid: number, startTime: string, session: number, parent = 1, state = "S"): Sighting => ({
  pid,
  startTime,
  session,
  parent,
  state,
});
const pids = (found: Sighting[]) => found.map(({ pid }) => pid);

describe("a process belongs to a life", () => {
  test("when it is the recorded agent", () => {
    expect(pids(findSurvivors(marks, [seen(900_002, "101", 7)]))).toEqual([900_002]);
  });
  test("not when another process got the agent's pid", () => {
    expect(findSurvivors(marks, [seen(900_002, "555", 7)])).toEqual([]);
  });
  test("when it is in the keeper's session, also after the keeper is gone", () => {
    expect(pids(findSurvivors(marks, [seen(900_010, "102", 900_001)]))).toEqual([900_010]);
  });
  test("not when the keeper's pid, and with it the session, is another's now", () => {
    expect(findSurvivors(marks, [seen(900_001, "999", 900_001), seen(900_010, "1000", 900_001)])).toEqual([]);
  });
  test("not by session in the foreground, where the session is the terminal's", () => {
    const foreground = { ...marks, life: { ...life, detached: false } };
    expect(findSurvivors(foreground, [seen(900_010, "102", 900_001)])).toEqual([]);
  });
  test("not when it is of an earlier boot", () => {
    expect(findSurvivors({ ...marks, bootId: "boot-2" }, [seen(900_002, "101", 900_001)])).toEqual([]);
  });
  test("not when it is dead already, nor when it is the keeper itself", () => {
    const dead = seen(900_010, "102", 900_001, 1, "Z");
    expect(findSurvivors(marks, [dead, seen(900_001, "100", 900_001)])).toEqual([]);
  });
});

describe("an agent's tree", () => {
  const helper = seen(900_003, "101", 900_001, 900_001);
  const all = [
    seen(900_001, "100", 900_001),
    seen(900_002, "101", 900_001, 900_001),
    helper,
    seen(900_004, "102", 900_001, helper.pid),
    seen(900_005, "102", 900_001, 900_002),
    seen(900_006, "103", 900_006, 900_001),
    seen(900_007, "104", 900_007, 1),
  ];
  test("holds what it started and what daemonised, not the keeper's helper, nor strangers", () => {
    const tree = agentTree(life, all, (pid) => pid === helper.pid);
    expect(tree.sort()).toEqual([900_002, 900_005, 900_006]);
  });
  test("holds an agent that is still a fork of its keeper", () => {
    expect(agentTree(life, all, () => true)).toEqual([900_002, 900_005]);
  });
  test("is the agent alone where processes cannot be seen", () => {
    expect(agentTree(life, [])).toEqual([900_002]);
  });
});

test("a tree is a process and all below it", () => {
  const all = [seen(2, "1", 1, 1), seen(3, "1", 1, 2), seen(4, "1", 1, 3), seen(5, "1", 1, 1)];
  expect(treeOf(2, all).sort()).toEqual([2, 3, 4]);
});
