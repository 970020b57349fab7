// A task on files that changed since the walk: each is captured or missed with a reason, and the task continues.
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { CaptureItem, TaskResult } from "../model/capture-item.ts";
import { runTask } from "./task.ts";

let root: string;
beforeEach(() => {
  root = fs.mkdtempSync(join(tmpdir(), "lazarus-task-"));
});
afterEach(() => fs.rmSync(root, { recursive: true }));

const at = (name: string) => join(root, name);
const item = (path: string, given: Partial<CaptureItem> = {}): CaptureItem => ({
  path,
  type: "file",
  size: 1,
  ...given,
});

function pack(...items: CaptureItem[]): TaskResult {
  return runTask({ kind: "pack", codec: "gzip", root, items, sizeHint: 0 });
}

const missed = (result: TaskResult) => result.missed.map(({ path, why }) => [path, why]);
const captured = (result: TaskResult) => result.captured.map(({ entry }) => entry.path);

describe("a path that changed since the walk", () => {
  it("is missed when its type changed", () => {
    fs.writeFileSync(at("file"), "x");
    fs.mkdirSync(at("directory"));
    fs.symlinkSync("nowhere", at("symlink"));
    const types = ["file", "directory", "symlink"] as const;
    for (const path of types) {
      for (const type of [...types, "fifo"] as const) {
        const result = pack(item(path, { type }));
        if (type === path) expect(captured(result)).toEqual([path]);
        else expect(missed(result)).toEqual([[path, "changed-type"]]);
      }
    }
    const hashed = runTask({
      kind: "hash",
      codec: "gzip",
      root,
      items: [item("directory"), item("file", { type: "directory" })],
    });
    expect(missed(hashed)).toEqual([
      ["directory", "changed-type"],
      ["file", "changed-type"],
    ]);
  });

  it("is reported as vanished, and the other items are packed", () => {
    fs.writeFileSync(at("b"), "content");
    const result = pack(item("a"), item("b"), item("c"));
    expect(missed(result)).toEqual([
      ["a", "vanished"],
      ["c", "vanished"],
    ]);
    const [b] = result.captured;
    expect(Buffer.from(result.member!.raw).toString("latin1", b!.at!, b!.at! + b!.stored!)).toBe("content");
  });

  it("is read to its current end when it grew or shrank", () => {
    fs.writeFileSync(at("f"), "x".repeat(100_000));
    expect(pack(item("f", { size: 3 })).captured[0]!.entry.size).toBe(100_000);
    fs.writeFileSync(at("f"), "");
    expect(pack(item("f", { size: 3 })).captured[0]!.entry).toMatchObject({ size: 0 });
  });
});

describe("names of one file", () => {
  it("are packed as a file and links; if the first is gone, the next takes its place", () => {
    fs.writeFileSync(at("b"), "content");
    fs.linkSync(at("b"), at("c"));
    const group = [
      item("a", { group: "g" }),
      item("b", { group: "g", linkTo: "a" }),
      item("c", { group: "g", linkTo: "a" }),
    ];
    const result = pack(...group);
    expect(missed(result)).toEqual([["a", "vanished"]]);
    expect(captured(result)).toEqual(["b", "c"]);
    const [b, c] = result.captured;
    expect(c).toMatchObject({ at: b!.at, stored: 7, entry: { sha256: b!.entry.sha256, group: "g" } });
    const raw = Buffer.from(result.member!.raw).toString("latin1");
    expect(raw).toContain("content");
    // Type flag and target of the last header.
    expect(raw.slice(raw.length - 512 + 156, raw.length - 512 + 158)).toBe("1b");
  });
});

describe("a large file", () => {
  const piece = (name: string, offset: number) =>
    runTask({
      kind: "piece",
      codec: "gzip",
      root,
      item: item(name),
      offset,
      length: 1000,
      prefix: Buffer.from("head"),
      suffixLength: 24,
    });

  it("that is gone or changed type yields zeros and is marked short", () => {
    fs.mkdirSync(at("directory"));
    for (const name of ["nowhere", "directory"]) {
      const { member, short, signature } = piece(name, 0);
      expect(Buffer.from(member!.raw).equals(Buffer.concat([Buffer.from("head"), Buffer.alloc(1024)]))).toBe(
        true,
      );
      expect({ short, signature }).toEqual({ short: true, signature: "" });
    }
  });

  it("that shrank yields its bytes, then zeros", () => {
    fs.writeFileSync(at("f"), "y".repeat(1500));
    expect(piece("f", 0).short).toBe(false);
    const { member, short } = piece("f", 1000);
    expect(short).toBe(true);
    expect(Buffer.from(member!.raw).toString("latin1", 4, 1004)).toBe("y".repeat(500) + "\0".repeat(500));
  });
});

describe("a database", () => {
  it("whose journal is in memory is refused between two page writes, not afterwards", async ({ skip }) => {
    if (process.platform !== "linux") skip("locks of other processes are only listed by Linux");
    {
      using database = new DatabaseSync(at("a.db"));
      database.exec("CREATE TABLE t (v); INSERT INTO t VALUES (randomblob(100))");
    }
    // Spills a page into the file and keeps the transaction open until its input ends.
    const script = `
      const { DatabaseSync } = await import("node:sqlite");
      const database = new DatabaseSync(process.argv[1]);
      database.exec("PRAGMA journal_mode = memory; PRAGMA cache_size = 1; BEGIN");
      for (let n = 0; n < 50; n += 1) database.exec("INSERT INTO t VALUES (randomblob(4000))");
      console.log("open");
      process.stdin.once("end", () => { database.exec("COMMIT"); console.log("done"); }).resume();`;
    const writer = spawn(process.execPath, ["--input-type=module", "-e", script, at("a.db")], {
      stdio: ["pipe", "pipe", "inherit"],
    });
    await once(writer.stdout, "data");
    // Old enough that the file's time does not matter.
    fs.utimesSync(at("a.db"), 1, 1);
    expect(fs.existsSync(at("a.db-journal"))).toBe(false);
    expect(missed(pack(item("a.db")))).toEqual([["a.db", "database"]]);
    const hashing = { kind: "hash", codec: "gzip", root, items: [item("a.db")] } as const;
    expect(missed(runTask(hashing))).toEqual([["a.db", "database"]]);
    writer.stdin.end();
    await once(writer, "exit");
    expect(captured(pack(item("a.db")))).toEqual(["a.db"]);
  });

  it("is refused during a transaction unless it is read from a copy", () => {
    fs.writeFileSync(at("a.db"), Buffer.concat([Buffer.from("SQLite format 3\0"), Buffer.alloc(200)]));
    expect(captured(pack(item("a.db")))).toEqual(["a.db"]);
    fs.writeFileSync(at("a.db-journal"), "");
    expect(missed(pack(item("a.db")))).toEqual([["a.db", "database"]]);
    fs.writeFileSync(at("copy"), "the copy");
    const [found] = pack(item("a.db", { source: at("copy") })).captured;
    expect(found!.entry).toMatchObject({ path: "a.db", size: 8 });
  });
});
