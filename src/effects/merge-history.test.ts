// Histories that are copied, torn, lost and merged.
import { appendFileSync, mkdtempSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemMachine } from "../platform/machine.ts";
import { openHistoryFile } from "./history.ts";
import { mergeHistory, readHistoryBytes } from "./merge-history.ts";

let root: string;
let from: string;
let to: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "lazarus-merge-history-"));
  from = join(root, "a", "m.jsonl");
  to = join(root, "b", "m.jsonl");
  const history = openHistoryFile(systemMachine, from);
  for (const id of ["one", "two", "three"]) history.append({ source: "once", id, attempt: 1, state: "done" });
});
afterEach(() => rmSync(root, { recursive: true }));

const merge = (position = 0) => mergeHistory(systemMachine, to, readHistoryBytes(from), position);
const known = (file: string) =>
  [...openHistoryFile(systemMachine, file).read().effects.values()].map(({ id }) => id);

it("a copy has the same bytes, and a later one only adds what is new", () => {
  expect(merge(40)).toBe(40);
  expect(merge(40)).toBe(40);
  openHistoryFile(systemMachine, from).append({ source: "once", id: "four", attempt: 1, state: "done" });
  expect(merge(40)).toBe(40);
  expect(readFileSync(to)).toEqual(readFileSync(from));
});

it("a copy that was torn at any byte is completed", () => {
  merge();
  const { length } = readFileSync(from);
  for (const size of [0, 1, Math.floor(length / 2), length - 1]) {
    truncateSync(to, size);
    merge();
    expect(readFileSync(to)).toEqual(readFileSync(from));
  }
});

it("a torn last line is not copied", () => {
  appendFileSync(from, '{"torn');
  merge();
  expect(known(to)).toEqual(["one", "two", "three"]);
  expect(openHistoryFile(systemMachine, to).read().damaged).toBe(0);
});

it("a history that starts differently gets the missing lines, and all of them count as later", () => {
  openHistoryFile(systemMachine, to).append({ source: "once", id: "own", attempt: 1, state: "done" });
  const firstLine = readFileSync(from).indexOf("\n") + 1;
  expect(merge(firstLine)).toBe(0);
  expect(merge(firstLine)).toBe(0);
  expect(known(to)).toEqual(["own", "one", "two", "three"]);
  // Lines that no history wrote are dropped.
  writeFileSync(from, '{"source":"once","id":"forged","state":"done","sum":"0123456789abcdef"}\n');
  merge();
  expect(known(to)).not.toContain("forged");
});
