import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { systemMachine } from "../platform/machine.ts";
import { readSession, type Session, sessionFile, writeSession } from "./session.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-session-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const SESSION: Session = { format: 1, adapter: "claude", session: null, since_epoch: 3, since_ms: 1_000 };

it("keeps which session a mission has", () => {
  expect(readSession(directory)).toBeUndefined();
  writeSession(systemMachine, directory, SESSION);
  expect(readSession(directory)).toEqual(SESSION);
  writeFileSync(sessionFile(directory), JSON.stringify({ ...SESSION, session: 7 }));
  expect(readSession(directory)).toBeUndefined();
});

it("writes nothing through a link that the agent made", () => {
  const cell = join(directory, "cell");
  mkdirSync(cell);
  symlinkSync(directory, join(cell, "conversation"));
  expect(() => writeSession(systemMachine, cell, SESSION)).toThrow("does not write through it");
});
