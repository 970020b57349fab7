import { appendFileSync, mkdtempSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { lastLogLines, readLogTail } from "./log-tail.ts";

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

describe("the lines that say why a program ended", () => {
  const node = [
    "/app/agent.js:7",
    "    throw new Error('the queue is empty');",
    "    ^",
    "",
    "Error: connect ECONNREFUSED 127.0.0.1:9",
    "    at afterConnect [as oncomplete] (node:net:1637:16) {",
    "  errno: -111,",
    "  code: 'ECONNREFUSED',",
    "  syscall: 'connect',",
    "  address: '127.0.0.1',",
    "  port: 9",
    "}",
    "",
    "Node.js v24.0.0",
  ];
  test("are the last ones with the message of the exception", () => {
    expect(lastLogLines(node, 3)).toEqual([
      "Error: connect ECONNREFUSED 127.0.0.1:9",
      "}",
      "Node.js v24.0.0",
    ]);
    expect(lastLogLines(node, 1)).toEqual(["Error: connect ECONNREFUSED 127.0.0.1:9"]);
    expect(lastLogLines(["a", "", "b", "c"], 2)).toEqual(["b", "c"]);
    expect(lastLogLines([], 2)).toEqual([]);
  });
  test("are not lost behind a long stack trace", () => {
    const frames = Array.from({ length: 300 }, (_, n) => `    at f (/app/deep.js:${n}:1)`);
    writeFileSync(log, ["Error: too deep", ...frames, "", "Node.js v24.0.0", ""].join("\n"));
    expect(readLogTail(log, 5)).toEqual(["Error: too deep", frames[0], "", "Node.js v24.0.0"]);
  });
});
