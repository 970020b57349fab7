// What an agent printed: its end is read in one bounded read, and its size is bounded while it is written to.
import {
  appendFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readLastLines } from "../death/log-tail.ts";
import { rotateLog } from "./rotate-log.ts";

let directory: string;
let log: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-log-"));
  log = join(directory, "agent.log");
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("the last lines", () => {
  test("are the last, whole ones, whatever ends them", () => {
    writeFileSync(log, "one\ntwo\r\nthree");
    expect(readLastLines(log, 2)).toEqual(["two", "three"]);
    expect(readLastLines(log, 9)).toEqual(["one", "two", "three"]);
  });
  test("begin with a whole line when the window begins inside one", () => {
    writeFileSync(log, `${"x".repeat(50)}\nlast but one\nlast\n`);
    expect(readLastLines(log, 9, { windowBytes: 30 })).toEqual(["last but one", "last"]);
  });
  test("of one endless line are its end, and bounded", () => {
    writeFileSync(log, "x".repeat(500_000));
    const [line, ...more] = readLastLines(log, 9);
    expect(more).toEqual([]);
    expect(line!.length).toBeLessThanOrEqual(2000);
  });
  test("of this life alone, unless the log was rotated since", () => {
    writeFileSync(log, "before\n");
    const { size } = statSync(log);
    appendFileSync(log, "after\n");
    expect(readLastLines(log, 9, { from: size })).toEqual(["after"]);
    writeFileSync(log, "new\n");
    expect(readLastLines(log, 9, { from: size })).toEqual(["new"]);
  });
  test("of what is no log are none", () => {
    writeFileSync(join(directory, "secret"), "secret\n");
    symlinkSync("secret", log);
    expect(readLastLines(log, 9)).toEqual([]);
    expect(readLastLines(directory, 9)).toEqual([]);
    expect(readLastLines(join(directory, "absent"), 9)).toEqual([]);
  });
});

describe("a log over its limit", () => {
  const numbered = (n: number) => `${log}.${n}`;
  test("is emptied in place, its end kept, the older ones moved on and the oldest dropped", () => {
    for (const [n, text] of ["first\n", "second\n", "third\n"].entries()) {
      writeFileSync(log, text.repeat(3));
      expect(rotateLog(log, 10, 2)).toBe(true);
      expect(statSync(log).size).toBe(0);
      expect(readFileSync(numbered(1), "utf8")).toContain(text);
      expect(existsSync(numbered(3))).toBe(false);
      if (n > 0) expect(readFileSync(numbered(2), "utf8")).toContain(["first", "second"][n - 1]);
    }
  });
  test("far over it keeps no more than the limit", () => {
    writeFileSync(log, `${"x".repeat(1000)}end`);
    rotateLog(log, 10, 1);
    expect(readFileSync(numbered(1), "utf8")).toBe("xxxxxxxend");
  });
  test("without older ones is only emptied; within it, or absent, it is left alone", () => {
    writeFileSync(log, "x".repeat(11));
    expect(rotateLog(log, 10, 0)).toBe(true);
    expect(existsSync(numbered(1))).toBe(false);
    writeFileSync(log, "x".repeat(10));
    expect(rotateLog(log, 10, 2)).toBe(false);
    expect(rotateLog(join(directory, "absent"), 10, 2)).toBe(false);
  });
});
