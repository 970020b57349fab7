import { expect, test } from "vitest";
import { type ProcessEntry, processTree } from "./process-table.ts";

test("a tree is a process and its descendants", () => {
  const entry = (pid: number, parent: number): ProcessEntry => ({
    pid,
    startTime: "1",
    session: 1,
    parent,
    state: "S",
  });
  expect(processTree(2, [entry(2, 1), entry(3, 2), entry(4, 3), entry(5, 1)]).sort()).toEqual([2, 3, 4]);
});
