import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createWorkerPool } from "../../platform/worker/worker-pool.ts";
import type { CaptureTask, TaskResult } from "../model/capture-item.ts";
import { createCapturePool } from "./pool.ts";

const MANY_BYTES = 1 << 30;
let root: string;

beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), "lazarus-pool-"));
});

afterEach(() => rmSync(root, { recursive: true, force: true }));

async function run(tasks: readonly CaptureTask[], totalBytes: number): Promise<TaskResult[]> {
  await using pool = createCapturePool();
  const results: TaskResult[] = [];
  await pool.run(tasks, totalBytes, (result, index) => {
    expect(index).toBe(results.length);
    // The memory of a member is reused once it was taken.
    const { raw, stored } = result.member!;
    results.push({ ...result, member: { raw: Buffer.from(raw), stored: Buffer.from(stored) } });
  });
  return results;
}

test.each(["gzip", "zstd"] as const)(
  "workers return the same results as one thread, in order (%s)",
  async (codec) => {
    const tasks: CaptureTask[] = [];
    for (let n = 0; n < 60; n += 1) {
      const path = `d${n}`;
      mkdirSync(join(root, path));
      // Small files, some that do not compress, and one that is larger than expected for a member.
      const content =
        n % 7 === 3 ? randomBytes(300_000) : n === 30 ? Buffer.alloc(9 << 20, "wide ") : Buffer.from(`${n}`);
      writeFileSync(join(root, path, "file"), content);
      const items = [
        { path, type: "directory", size: 0 },
        { path: `${path}/file`, type: "file", size: content.length },
      ] as const;
      tasks.push({ kind: "pack", codec, root, items, sizeHint: content.length });
    }
    const alone = await run(tasks, 0);
    const together = await run(tasks, MANY_BYTES);
    const inflate = codec === "gzip" ? gunzipSync : zstdDecompressSync;
    for (const [n, result] of together.entries()) {
      expect(result.captured).toEqual(alone[n]!.captured);
      expect(Buffer.compare(result.member!.raw, alone[n]!.member!.raw)).toBe(0);
      expect(Buffer.compare(inflate(result.member!.stored), result.member!.raw)).toBe(0);
    }
  },
);

test("members come in memory that is shared with the workers and reused", async () => {
  writeFileSync(join(root, "file"), randomBytes(5000));
  const items = [{ path: "file", type: "file", size: 5000 }] as const;
  const task: CaptureTask = { kind: "pack", codec: "gzip", root, items, sizeHint: 5000 };
  await using pool = createCapturePool();
  const buffers = new Set<ArrayBufferLike>();
  await pool.run(new Array(200).fill(task), MANY_BYTES, ({ member }) => {
    buffers.add(member!.raw.buffer).add(member!.stored.buffer);
  });
  expect([...buffers].every((buffer) => buffer instanceof SharedArrayBuffer)).toBe(true);
});

test("a failure while taking a result ends the run", async () => {
  writeFileSync(join(root, "file"), "x");
  const items = [{ path: "file", type: "file", size: 1 }] as const;
  const task: CaptureTask = { kind: "pack", codec: "gzip", root, items, sizeHint: 1 };
  await using pool = createCapturePool();
  const failing = pool.run(new Array(20).fill(task), MANY_BYTES, (_, index) => {
    if (index === 5) throw new Error("the disk is full");
  });
  await expect(failing).rejects.toThrow("the disk is full");
});

test("a task is only asked for when a worker has a place for it", async () => {
  await using workers = createWorkerPool<CaptureTask, unknown>({
    module: "capture-worker",
    from: new URL("pool.ts", import.meta.url).href,
    workers: 2,
    depth: 3,
    youngGenerationMb: 4,
  });
  let asked = 0;
  let taken = 0;
  let mostAhead = 0;
  function* tasks(): Generator<CaptureTask> {
    for (; asked < 200; asked += 1) yield { kind: "hash", codec: "gzip", root, items: [] };
  }
  await workers.run(tasks(), () => {
    mostAhead = Math.max(mostAhead, asked - taken);
    taken += 1;
  });
  expect(taken).toBe(200);
  expect(mostAhead).toBeLessThanOrEqual(12);
});

test("a failure while a task is asked for ends the run", async () => {
  await using workers = createWorkerPool<CaptureTask, unknown>({
    module: "capture-worker",
    from: new URL("pool.ts", import.meta.url).href,
    workers: 1,
    depth: 1,
    youngGenerationMb: 4,
  });
  for (const after of [0, 1, 30]) {
    function* tasks(): Generator<CaptureTask> {
      for (let n = 0; n < after; n += 1) yield { kind: "hash", codec: "gzip", root, items: [] };
      throw new Error("no space for its directory");
    }
    await expect(workers.run(tasks(), () => {})).rejects.toThrow("no space for its directory");
  }
});
