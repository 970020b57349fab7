// `node bare-loop.ts <cell> <file>`: the least that a first checkpoint has to do in Node. One walk that takes every stat; then
// workers open, stat, read and hash each file and compress a megabyte at a time; this thread hashes the stream before and
// after compression and writes it. No tar headers, no list of what was stored, no git, no database, no check of the result: what a
// checkpoint takes beyond this is our own.
import { createHash } from "node:crypto";
import { closeSync, fsyncSync, lstatSync, openSync, readdirSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createWorkerPool } from "../../src/platform/worker/worker-pool.ts";
import type { BareFile, BareMember } from "./bare-loop-worker.ts";

const MEMBER_BYTES = 1 << 20;
const MEMBER_FILES = 512;
/** A piece of a large file, or 512 small ones, and their compressed form. */
const SHARED_BYTES = 8 << 20;

function listFiles(root: string): BareFile[] {
  const files: BareFile[] = [];
  const pending = [root];
  for (let directory = pending.pop(); directory !== undefined; directory = pending.pop())
    for (const name of readdirSync(directory)) {
      const path = join(directory, name);
      const stat = lstatSync(path);
      if (stat.isDirectory()) pending.push(path);
      if (!stat.isFile()) continue;
      for (let offset = 0; offset === 0 || offset < stat.size; offset += MEMBER_BYTES)
        files.push({ path, offset, length: Math.min(MEMBER_BYTES, stat.size - offset) });
    }
  return files;
}

function* members(files: readonly BareFile[]): Generator<BareFile[]> {
  let member: BareFile[] = [];
  let bytes = 0;
  for (const file of files) {
    member.push(file);
    bytes += file.length;
    if (bytes < MEMBER_BYTES && member.length < MEMBER_FILES) continue;
    yield member;
    member = [];
    bytes = 0;
  }
  if (member.length > 0) yield member;
}

const [cell, target] = process.argv.slice(2) as [string, string];
const fd = openSync(target, "w");
const before = createHash("sha256");
const after = createHash("sha256");
{
  await using pool = createWorkerPool<BareFile[], BareMember>({
    module: "bare-loop-worker",
    from: import.meta.url,
    depth: 2,
    youngGenerationMb: 12,
    sharedBytes: SHARED_BYTES,
  });
  pool.start();
  await pool.run(members(listFiles(cell)), ({ raw, stored }) => {
    before.update(raw);
    after.update(stored);
    writeSync(fd, stored);
  });
}
before.digest();
after.digest();
fsyncSync(fd);
closeSync(fd);
