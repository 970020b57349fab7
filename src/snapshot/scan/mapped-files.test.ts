// The same files whether the kernel selects the mappings or Lazarus reads them all as text.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { expect, it, vi } from "vitest";
import { posixSupport } from "../../platform/posix.ts";
import { findMappedFiles } from "./mapped-files.ts";

it.runIf(process.platform === "linux")("mapped files are found without the kernel's selection too", () => {
  const directory = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "lazarus-mapped-")));
  const support = posixSupport();
  try {
    const database = new DatabaseSync(join(directory, "data"));
    // SQLite maps the index of the log, shared and writable.
    database.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
    const { ino } = fs.statSync(join(directory, "data-shm"));
    expect(findMappedFiles([directory]).inodes).toContain(ino);
    if (support.ok) vi.spyOn(support.posix, "sharedMappings").mockReturnValue(undefined);
    expect(findMappedFiles([directory]).inodes).toContain(ino);
    database.close();
  } finally {
    fs.rmSync(directory, { recursive: true });
  }
});
