// The effect history on a real disk: torn and damaged lines, races between processes, and where it is found.
import { execFileSync, spawn } from "node:child_process";
import {
  appendFileSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemDisk } from "../platform/disk.ts";
import { systemMachine } from "../platform/machine.ts";
import { createFaultyDisk } from "../testing/faulty-disk.ts";
import { isRestoredSince } from "./fold.ts";
import { openHistory, openHistoryAt } from "./history.ts";
import { decodeLine, encodeLine } from "./line.ts";
import { mergeHistory, readHistoryBytes } from "./merge-history.ts";
import { findCell, historyFile } from "./place.ts";

let root: string;
let cell: string;

beforeEach(() => {
  root = realpathSync(mkdtempSync(join(tmpdir(), "lazarus-effects-")));
  cell = join(root, "missions", "m1");
  mkdirSync(join(cell, "meta"), { recursive: true });
  writeFileSync(join(cell, "meta", "mission.json"), "{}");
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const IN_ITS_PLACE: Readonly<Record<string, (file: string) => unknown>> = {
  "a link": (file) => symlinkSync(join(root, "other"), file),
  "a directory": (file) => mkdirSync(file),
  "a FIFO": (file) => execFileSync("mkfifo", [file]),
};

for (const [what, put] of Object.entries(IN_ITS_PLACE))
  it(`${what} in the place of a history is refused, and neither followed nor waited for`, () => {
    writeFileSync(join(root, "other"), "not a history");
    const file = historyFile(cell);
    mkdirSync(join(file, ".."));
    put(file);
    const refused = expect.objectContaining({
      code: "DISK_IO",
      message: expect.stringContaining("regular file"),
    });
    const history = openHistory(systemMachine, cell);
    expect(() => history.read()).toThrow(refused);
    expect(() => history.start({ ...send, owner: { pid: 1 } })).toThrow(refused);
    expect(() => readHistoryBytes(file)).toThrow(refused);
    expect(() => mergeHistory(systemMachine, file, Buffer.from("line\n"))).toThrow(refused);
    expect(readFileSync(join(root, "other"), "utf8")).toBe("not a history");
  });

const send = { source: "once", id: "report/send", attempt: 1, name: "send" } as const;

describe("a history", () => {
  it("is outside the cell and keeps what was appended", () => {
    const history = openHistory(systemMachine, cell);
    expect(history.position()).toBe(0);
    expect(history.find("once", send.id)).toBeUndefined();
    expect(history.start({ ...send, digest: "d", owner: { pid: 1 } })).toBe(true);
    history.append({ ...send, state: "done", result: { exitCode: 0 } });
    rmSync(cell, { recursive: true });
    const again = openHistory(systemMachine, cell);
    const found = again.find("once", send.id)!;
    expect(found).toMatchObject({ state: "done", attempt: 1, digest: "d", name: "send", owner: { pid: 1 } });
    expect(again.resultOf(found)).toEqual({ exitCode: 0 });
    expect(again.position()).toBe(history.position());
  });

  it("never changes an effect that is done, and counts only later attempts", () => {
    const history = openHistory(systemMachine, cell);
    expect(history.start(send)).toBe(true);
    expect(history.start({ ...send, attempt: 3 })).toBe(true);
    history.append({ ...send, state: "failed" });
    expect(history.find("once", send.id)).toMatchObject({ state: "started", attempt: 3 });
    history.append({ ...send, attempt: 3, state: "done" });
    for (const state of ["started", "failed", "withdrawn"] as const)
      history.append({ ...send, attempt: 4, state });
    expect(history.find("once", send.id)).toMatchObject({ state: "done", attempt: 3 });
  });

  it("treats a tool call with a different input as a different effect", () => {
    const history = openHistory(systemMachine, cell);
    const call = { source: "run", id: "r1.4.0", attempt: 1 } as const;
    history.start({ ...call, digest: "a" });
    history.append({ ...call, digest: "a", state: "done" });
    expect(history.find("run", "r1.4.0", "a")).toMatchObject({ state: "done" });
    expect(history.find("run", "r1.4.0", "b")).toBeUndefined();
  });

  it("shows what was started before a restore", () => {
    const history = openHistory(systemMachine, cell);
    history.start(send);
    const mark = { source: "mission", state: "restored", id: "c1", attempt: 0, position: 0 } as const;
    history.append(mark);
    history.start({ ...send, id: "later" });
    const fold = history.read();
    expect(isRestoredSince(fold, fold.effects.get("once report/send")!.startedAt)).toBe(true);
    expect(isRestoredSince(fold, fold.effects.get("once later")!.startedAt)).toBe(false);
  });
});

describe("a damaged history", () => {
  it("loses a torn last line and nothing else", () => {
    const history = openHistory(systemMachine, cell);
    history.start(send);
    const torn = encodeLine({ time_ms: 1, ...send, state: "done" });
    for (const length of [1, 20, torn.length - 1]) {
      appendFileSync(history.file, torn.slice(0, length));
      const reader = openHistory(systemMachine, cell);
      expect(reader.find("once", send.id)).toMatchObject({ state: "started" });
      // The next line is not glued to the torn one.
      reader.append({ ...send, id: `after ${length}`, state: "done" });
      expect(openHistory(systemMachine, cell).find("once", `after ${length}`)).toMatchObject({
        state: "done",
      });
    }
    expect(openHistory(systemMachine, cell).read().damaged).toBe(3);
    expect(history.find("once", send.id)).toMatchObject({ state: "started" });
  });

  it("recognizes a changed byte anywhere in a line", () => {
    const text = encodeLine({ time_ms: 1, ...send, state: "done", result: { stdout: "sent" } });
    expect(decodeLine(text)).toMatchObject({ state: "done", result: { stdout: "sent" } });
    for (let at = 0; at < text.length; at += 1) {
      const changed = `${text.slice(0, at)}${text[at] === "x" ? "y" : "x"}${text.slice(at + 1)}`;
      expect(decodeLine(changed), `byte ${at}`).toBeUndefined();
    }
  });

  it("writes a line again that another writer spoiled", () => {
    let spoiled = false;
    const disk = createFaultyDisk(systemDisk, {
      code: "EIO",
      at: ({ method }) => {
        // Between the check for a torn line and the write: the start of a line of another process on a full disk.
        if (method === "write" && !spoiled) appendFileSync(historyFile(cell), '{"torn');
        if (method === "write") spoiled = true;
        return false;
      },
    });
    const history = openHistory({ ...systemMachine, disk }, cell);
    expect(history.start(send)).toBe(true);
    expect(openHistory(systemMachine, cell).find("once", send.id)).toMatchObject({ state: "started" });
  });

  it("refuses when it cannot be written", () => {
    const disk = createFaultyDisk(systemDisk, { code: "ENOSPC", at: ({ method }) => method === "write" });
    expect(() => openHistory({ ...systemMachine, disk }, cell).start(send)).toThrow(/disk is full/);
    expect(openHistory(systemMachine, cell).find("once", send.id)).toBeUndefined();
  });
});

it("of many processes that start the same attempt, one wins", async () => {
  const program = join(root, "racer.ts");
  const module = (name: string) => JSON.stringify(join(import.meta.dirname, name));
  writeFileSync(
    program,
    `import { openHistory } from ${module("history.ts")};
     import { systemMachine } from ${module("../platform/machine.ts")};
     const history = openHistory(systemMachine, ${JSON.stringify(cell)});
     let won = "";
     for (let i = 0; i < 50; i += 1) {
       const line = { source: "once", id: "k" + i, attempt: 1, owner: { pid: process.pid } };
       won += history.find("once", "k" + i) === undefined && history.start(line) ? "1" : "0";
     }
     process.stdout.write(won);`,
  );
  const race = () =>
    new Promise<string>((resolve, reject) => {
      const child = spawn(process.execPath, [program], { stdio: ["ignore", "pipe", "inherit"] });
      let output = "";
      child.stdout.on("data", (chunk) => {
        output += chunk;
      });
      child.on("error", reject);
      child.on("close", () => resolve(output));
    });
  const results = await Promise.all([race(), race(), race(), race()]);
  for (let i = 0; i < 50; i += 1)
    expect(
      results.filter((result) => result[i] === "1"),
      `key ${i}: ${results.join(" ")}`,
    ).toHaveLength(1);
  expect(openHistory(systemMachine, cell).read().damaged).toBe(0);
});

describe("the history of a path", () => {
  it("is that of the cell the path is in, through links and for paths that do not exist", () => {
    const file = join(root, "missions", ".lazarus-effects", "m1.jsonl");
    expect(historyFile(cell)).toBe(file);
    expect(findCell(join(cell, "state", "runs.db"))).toEqual({
      cellRoot: cell,
      file,
      inside: "state/runs.db",
    });
    symlinkSync(cell, join(root, "link"));
    expect(openHistoryAt(systemMachine, join(root, "link", "worktree"))).toMatchObject({
      inside: "worktree",
    });
    expect(openHistoryAt(systemMachine, join(root, "link", "worktree"))!.history.file).toBe(file);
    expect(openHistoryAt(systemMachine, root)).toBeUndefined();
    expect(openHistoryAt(systemMachine, join(root, "elsewhere", "runs.db"))).toBeUndefined();
  });

  it("is found without the seed files of the cell, once it has a line", () => {
    openHistory(systemMachine, cell).start(send);
    renameSync(join(cell, "meta"), join(root, "meta"));
    expect(findCell(join(cell, "worktree"))?.cellRoot).toBe(cell);
    expect(readFileSync(historyFile(cell), "utf8")).toContain('"id":"report/send"');
  });
});
