import { expect, it } from "vitest";
import { adviseMore, isTight } from "./room.ts";

const GIB = 1 << 30;

it("a disk is nearly full when little of it is left, and little at all", () => {
  expect(isTight(10 << 20, 100 * GIB)).toBe(true);
  expect(isTight(4 * GIB, 1000 * GIB)).toBe(false);
  expect(isTight(10 << 20, 64 << 20)).toBe(false);
});

it("the vault from which most can be removed is named, or that none is left", () => {
  const most = [
    { mission: "a", bytes: 10 },
    { mission: "b", bytes: 2 << 20 },
  ];
  expect(adviseMore(most)).toContain("to free up to 2.0 MiB more: lazarus prune b --max-bytes 1");
  expect(adviseMore([{ mission: "a", bytes: 0 }])).toContain("no prune can free more");
});
