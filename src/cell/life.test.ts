// Testing a lock without taking it.
import { closeSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { tryAcquireLock } from "../platform/lock.ts";
import { systemMachine } from "../platform/machine.ts";
import { posixSupport } from "../platform/posix.ts";
import { isLocked } from "./life.ts";

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-life-"));
  path = join(directory, "life.lock");
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("a lock", () => {
  test("is held while a process has it, not before or after", () => {
    expect(isLocked(path)).toBe(false);
    {
      using _ = tryAcquireLock(systemMachine, path, "life of m1")!;
      expect(isLocked(path)).toBe(true);
    }
    expect(isLocked(path)).toBe(false);
  });

  test("is not held by another process that only tests it", () => {
    const support = posixSupport();
    if (!support.ok) throw new Error(support.reason);
    const fd = openSync(path, "a+");
    try {
      expect(support.posix.tryLock(fd, "shared")).toBe(true);
      expect(isLocked(path)).toBe(false);
    } finally {
      closeSync(fd);
    }
  });
});
