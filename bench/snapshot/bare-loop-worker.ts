// The worker of bare-loop.ts: the system calls, hashes and compression that files take in a checkpoint, and nothing else.
import { hash } from "node:crypto";
import { closeSync, fstatSync, openSync, readSync } from "node:fs";
import { serveTasks } from "../../src/platform/worker/worker-pool.ts";
import { gzipCodec } from "../../src/snapshot/vault/codec.ts";

export interface BareFile {
  readonly path: string;
  readonly offset: number;
  readonly length: number;
}

export interface BareMember {
  readonly raw: Uint8Array;
  readonly stored: Uint8Array;
}

serveTasks("reading files", (files: readonly BareFile[], memory) => {
  const buffer = Buffer.from(memory!);
  let end = 0;
  for (const { path, offset, length } of files) {
    const fd = openSync(path, "r");
    fstatSync(fd);
    const count = length === 0 ? 0 : readSync(fd, buffer, end, length, offset);
    fstatSync(fd);
    closeSync(fd);
    hash("sha256", buffer.subarray(end, end + count));
    end += count;
  }
  const raw = buffer.subarray(0, end);
  return { result: { raw, stored: gzipCodec.compressFast(raw, buffer.subarray(end)) } };
});
