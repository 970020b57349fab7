import { expect, it } from "vitest";
import { adviseOnSpace, isNearlyFull } from "./disk-space.ts";

const GIB = 1 << 30;

it("a disk is nearly full when both the free share and the free bytes are small", () => {
  expect(isNearlyFull(10 << 20, 100 * GIB)).toBe(true);
  expect(isNearlyFull(4 * GIB, 1000 * GIB)).toBe(false);
  expect(isNearlyFull(10 << 20, 64 << 20)).toBe(false);
});

it("names the vault from which most can be removed, or says that no prune helps", () => {
  const most = [
    { mission: "a", bytes: 10 },
    { mission: "b", bytes: 2 << 20 },
  ];
  expect(adviseOnSpace(most)).toContain("to free up to 2.0 MiB more: lazarus prune b --max-bytes 1");
  expect(adviseOnSpace([{ mission: "a", bytes: 0 }])).toContain("no prune can free more");
});
