import {
  closeSync,
  constants,
  fstatSync,
  ftruncateSync,
  linkSync,
  lstatSync,
  mkdtempSync,
  openSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createStat, ctimeMs, findStat, hasFileType, statOpen, statPath } from "./file-stat.ts";
import { posixSupport } from "./posix.ts";

let root: string;
let file: string;
let fd: number;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "lazarus-stat-"));
  file = join(root, "file");
  writeFileSync(file, "x".repeat(5000), { mode: 0o640 });
  linkSync(file, join(root, "other"));
  fd = openSync(file, "r+");
});

afterEach(() => {
  closeSync(fd);
  rmSync(root, { recursive: true });
});

test("statOpen and statPath agree with Node", () => {
  const exact = fstatSync(fd, { bigint: true });
  for (const stat of [statOpen(fd, createStat()), statPath(file, createStat())]) {
    for (const key of ["dev", "mode", "uid", "gid", "nlink", "ino", "size", "blocks"] as const)
      expect([key, stat[key]]).toEqual([key, Number(exact[key])]);
    expect(BigInt(stat.mtimeSec) * 1_000_000_000n + BigInt(stat.mtimeNs)).toBe(exact.mtimeNs);
    expect(BigInt(stat.ctimeSec) * 1_000_000_000n + BigInt(stat.ctimeNs)).toBe(exact.ctimeNs);
    expect(ctimeMs(stat)).toBe(lstatSync(file).ctimeMs);
    expect(hasFileType(stat, constants.S_IFREG)).toBe(true);
  }
});

test("sizes beyond 32 bits are exact", () => {
  ftruncateSync(fd, 2 ** 33 + 7);
  expect(statOpen(fd, createStat()).size).toBe(2 ** 33 + 7);
});

test("times before 1970 have floored seconds and positive nanoseconds", ({ skip }) => {
  const support = posixSupport();
  if (!support.ok) return skip(support.reason);
  support.posix.setTimes(file, 0n, -1_250_000_001n);
  for (const stat of [statOpen(fd, createStat()), statPath(file, createStat())])
    expect([stat.mtimeSec, stat.mtimeNs]).toEqual([-2, 749_999_999]);
});

test("a link is not followed, and a missing file is an error", () => {
  symlinkSync("file", join(root, "link"));
  expect(hasFileType(statPath(join(root, "link"), createStat()), constants.S_IFLNK)).toBe(true);
  expect(() => statPath(join(root, "nowhere"), createStat())).toThrow("ENOENT");
  expect(findStat(join(root, "nowhere"), createStat())).toBeUndefined();
  expect(findStat(join(root, "link"), createStat())!.size).toBe("file".length);
  expect(() => findStat(join(file, "below"), createStat())).toThrow("ENOTDIR");
  expect(() => statOpen(1_000_000, createStat())).toThrow("EBADF");
});
