import { appendFileSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { readLogTail } from "./log-tail.ts";

let directory: string;
let log: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-log-"));
  log = join(directory, "agent.log");
});
afterEach(() => rmSync(directory, { recursive: true }));

describe("the last lines", () => {
  test("end with any kind of line ending or none", () => {
    writeFileSync(log, "one\ntwo\r\nthree");
    expect(readLogTail(log, 2)).toEqual(["two", "three"]);
    expect(readLogTail(log, 9)).toEqual(["one", "two", "three"]);
  });
  test("start with a whole line when the window starts inside one", () => {
    writeFileSync(log, `${"x".repeat(50)}\nlast but one\nlast\n`);
    expect(readLogTail(log, 9, { windowBytes: 30 })).toEqual(["last but one", "last"]);
  });
  test("are truncated when a line is very long", () => {
    writeFileSync(log, "x".repeat(500_000));
    const [line, ...more] = readLogTail(log, 9);
    expect(more).toEqual([]);
    expect(line!.length).toBeLessThanOrEqual(2000);
  });
  test("start at an offset, unless the log was rotated since", () => {
    writeFileSync(log, "before\n");
    const { size } = statSync(log);
    appendFileSync(log, "after\n");
    expect(readLogTail(log, 9, { from: size })).toEqual(["after"]);
    writeFileSync(log, "new\n");
    expect(readLogTail(log, 9, { from: size })).toEqual(["new"]);
  });
  test("are empty for anything but a regular file", () => {
    writeFileSync(join(directory, "secret"), "secret\n");
    symlinkSync("secret", log);
    expect(readLogTail(log, 9)).toEqual([]);
    expect(readLogTail(directory, 9)).toEqual([]);
    expect(readLogTail(join(directory, "absent"), 9)).toEqual([]);
  });
});
