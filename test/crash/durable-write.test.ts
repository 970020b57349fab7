// INV-1 on a real process: SIGKILL at every durable.* crash point, at its first and at a later pass. Acknowledged
// writes survive, every file is complete, and the next process works normally.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { systemDisk } from "../../src/platform/disk.ts";
import {
  createFile,
  makeDirectory,
  removeFile,
  replaceFile,
  sweepTemporaries,
} from "../../src/platform/durable.ts";
import { pidInUse } from "../../src/platform/process-identity.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { contentOfRound, ROUNDS } from "./durable-rounds.ts";
import { runUntil } from "./kill.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const points = listCrashPoints(here("../../src/platform"))
  .map(({ name }) => name)
  .filter((name) => name.startsWith("durable."));
const PASSES = [1, 3];

const runWriter = (directory: string, crashAt: string) =>
  runUntil(crashAt, here("durable-writer.ts"), directory);

/** The highest round acknowledged for each kind of write; 0 if there is none. */
function acknowledged(stdout: string): (what: string) => number {
  const rounds = new Map<string, number>();
  for (const [, what = "", round] of stdout.matchAll(/^saved (\w+) (\d+)$/gm))
    rounds.set(what, Number(round));
  return (what) => rounds.get(what) ?? 0;
}

function check(directory: string, stdout: string): void {
  const path = (name: string) => join(directory, name);
  const last = acknowledged(stdout);

  if (last("replaced") > 0) expect(existsSync(path("replaced"))).toBe(true);
  if (existsSync(path("replaced"))) {
    const allowed = [last("replaced"), last("replaced") + 1].map(contentOfRound);
    const found = readFileSync(path("replaced"), "utf8");
    expect(
      allowed.includes(found),
      `replaced is neither old nor new: ${found.slice(0, 40)}… (${found.length})`,
    ).toBe(true);
  }

  for (let round = 1; round <= ROUNDS; round++) {
    const name = `created-${round}`;
    // During its removal, the file may or may not exist.
    const removing = round === last("removed") + 1 && round < last("created");
    if (round <= last("removed")) expect(existsSync(path(name)), `${name} was removed`).toBe(false);
    else if (round <= last("created") && !removing)
      expect(existsSync(path(name)), `${name} was created`).toBe(true);
    if (existsSync(path(name)))
      expect(readFileSync(path(name), "utf8") === contentOfRound(round), name).toBe(true);
    if (round <= last("made")) expect(statSync(path(`made-${round}/below`)).isDirectory()).toBe(true);
  }

  const log = existsSync(path("log")) ? readFileSync(path("log"), "utf8").split("\n") : [];
  for (let round = 1; round <= last("appended"); round++) expect(log).toContain(`line ${round}`);
}

/** What the next process does: sweeps, then writes everything again. */
function writeAgain(directory: string): void {
  const path = (name: string) => join(directory, name);
  const leftovers = readdirSync(directory).filter((name) => name.endsWith(".tmp"));
  expect(leftovers.length, "a killed writer leaves at most one temporary").toBeLessThanOrEqual(1);
  expect(sweepTemporaries(systemDisk, directory, pidInUse)).toEqual(leftovers);
  expect(readdirSync(directory).filter((name) => name.startsWith("."))).toEqual([]);
  replaceFile(systemDisk, path("replaced"), "the next content");
  expect(readFileSync(path("replaced"), "utf8")).toBe("the next content");
  expect(createFile(systemDisk, path("created-next"), "x")).toBe(true);
  expect(removeFile(systemDisk, path("created-next"))).toBe(true);
  makeDirectory(systemDisk, path("made-1/below"));
  expect(statSync(path("made-1/below")).isDirectory()).toBe(true);
}

describe.concurrent("a durable writer killed with SIGKILL", () => {
  for (const point of points) {
    for (const pass of PASSES) {
      it(`at ${point}, pass ${pass}, loses nothing it acknowledged`, async () => {
        const directory = mkdtempSync(join(tmpdir(), "lazarus-kill-"));
        try {
          const ending = await runWriter(directory, `${point}#${pass}`);
          expect(ending.signal, `${point} is never reached: make durable-writer.ts reach it`).toBe("SIGKILL");
          check(directory, ending.stdout);
          writeAgain(directory);
        } finally {
          rmSync(directory, { recursive: true, force: true });
        }
      });
    }
  }

  it("finishes, and passes the same checks, when it is not killed", async () => {
    const directory = mkdtempSync(join(tmpdir(), "lazarus-kill-"));
    try {
      const ending = await runWriter(directory, "durable.never");
      expect(ending).toMatchObject({ code: 0, signal: null });
      expect(ending.stdout).toContain("finished");
      check(directory, ending.stdout);
      expect(readdirSync(directory).sort()).toEqual(
        ["created-4", "log", "made-1", "made-2", "made-3", "made-4", "replaced"].sort(),
      );
    } finally {
      rmSync(directory, { recursive: true, force: true });
    }
  });
});

it("finds crash points", () => {
  expect(points.length).toBeGreaterThanOrEqual(7);
});
