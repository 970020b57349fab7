// Mappings of this process: SQLite maps the index of a write-ahead log, shared and writable.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it } from "vitest";
import { posixSupport } from "../posix.ts";

const MAPS = "/proc/self/maps";
const support = posixSupport();

function select() {
  const fd = fs.openSync(MAPS, "r");
  try {
    return support.ok ? support.posix.sharedMappings(fd) : undefined;
  } finally {
    fs.closeSync(fd);
  }
}

/** The same from the text. */
function read() {
  const rows = fs.readFileSync(MAPS, "utf8").matchAll(/^\S+ .w.s \S+ \S+ ([1-9]\d*) +(.*)$/gm);
  return Array.from(rows, ([, inode, path]) => ({ inode: Number(inode), path }));
}

const hasMaps = fs.existsSync(MAPS);
const canSelect = hasMaps && select() !== undefined;
const reason = hasMaps ? "a kernel before Linux 6.11 cannot select mappings" : "no /proc";

it("the kernel selects the shared, writable mappings of files that are in the text", (context) => {
  if (!canSelect) context.skip(reason);
  const directory = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "lazarus-mappings-")));
  const path = join(directory, "data-shm");
  try {
    const database = new DatabaseSync(join(directory, "data"));
    database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    expect(select()).toContainEqual({ inode: fs.statSync(path).ino, path });
    expect(select()).toEqual(read());
    database.close();
    expect(select()!.map((mapping) => mapping.path)).not.toContain(path);
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
});
