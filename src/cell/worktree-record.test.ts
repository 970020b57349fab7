import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemMachine } from "../platform/machine.ts";
import {
  describeWorktree,
  identifyDirectory,
  isSameDirectory,
  readOutsideWorktree,
  readWorktreeRecord,
  writeWorktreeRecord,
} from "./worktree-record.ts";

describe("the identity of a directory", () => {
  const known = { device: "1", inode: "2", born_ns: "3" };

  it("is inode and creation time, regardless of the device number", () => {
    expect(isSameDirectory(known, known)).toBe(true);
    expect(isSameDirectory(known, { ...known, device: "9" })).toBe(true);
    expect(isSameDirectory(known, { ...known, inode: "9" })).toBe(false);
    expect(isSameDirectory(known, { ...known, born_ns: "9" })).toBe(false);
    expect(isSameDirectory(known, { ...known, born_ns: null })).toBe(false);
  });

  it("includes the device if there is no creation time", () => {
    const unborn = { ...known, born_ns: null };
    expect(isSameDirectory(unborn, unborn)).toBe(true);
    expect(isSameDirectory(unborn, { ...unborn, device: "9" })).toBe(false);
  });
});

describe("the record of a worktree", () => {
  let directory: string;

  beforeEach(() => {
    directory = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "lazarus-record-")));
  });

  afterEach(() => fs.rmSync(directory, { recursive: true }));

  it("is read back, and no longer names a worktree once it is released", () => {
    const record = describeWorktree("m", directory, 5);
    expect(readWorktreeRecord(directory, "m")).toBeUndefined();
    writeWorktreeRecord(systemMachine, directory, record);
    expect(readOutsideWorktree(directory, "m")).toEqual(record);
    expect(isSameDirectory(record, identifyDirectory(directory)!)).toBe(true);
    writeWorktreeRecord(systemMachine, directory, { ...record, released_ms: 6 });
    expect(readOutsideWorktree(directory, "m")).toBeUndefined();
    expect(readWorktreeRecord(directory, "m")?.released_ms).toBe(6);
  });

  it("is an error when it cannot be read: the worktree is not guessed", () => {
    fs.mkdirSync(join(directory, ".lazarus-worktrees"));
    for (const text of ["{", '{"format": 2}', "[]"]) {
      fs.writeFileSync(join(directory, ".lazarus-worktrees", "m.json"), text);
      expect(() => readWorktreeRecord(directory, "m")).toThrow("cannot be read");
    }
  });

  it("does not accept a link to the directory", () => {
    fs.symlinkSync(directory, join(directory, "link"));
    expect(identifyDirectory(join(directory, "link"))).toBeUndefined();
    expect(identifyDirectory(join(directory, "nothing", "there"))).toBeUndefined();
  });
});
