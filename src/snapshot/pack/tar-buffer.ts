// A tar stream under construction: one buffer, in shared memory where there is some, that grows when files grew since they
// were listed.
import { readSync } from "node:fs";
import type { TaskMemory } from "../model/capture-item.ts";

export class TarBuffer {
  bytes: Buffer;
  length = 0;

  constructor(capacity: number, memory?: TaskMemory) {
    this.bytes =
      memory === undefined || memory.raw.byteLength < capacity
        ? Buffer.allocUnsafeSlow(capacity)
        : (Buffer.from(memory.raw as ArrayBufferLike as ArrayBuffer) as Buffer);
  }

  reserve(count: number): void {
    if (this.length + count <= this.bytes.length) return;
    const larger = Buffer.allocUnsafeSlow(Math.max(this.bytes.length * 2, this.length + count));
    this.bytes.copy(larger, 0, 0, this.length);
    this.bytes = larger;
  }

  append(chunk: Uint8Array): void {
    this.reserve(chunk.length);
    this.bytes.set(chunk, this.length);
    this.length += chunk.length;
  }

  pad(count: number): void {
    this.reserve(count);
    this.bytes.fill(0, this.length, this.length + count);
    this.length += count;
  }
}

/** Reads exactly `length` bytes; what a shrinking file no longer has becomes zeros, and the stat tells that it moved. */
export function readInto(fd: number, tar: TarBuffer, offset: number, length: number): void {
  const end = tar.length + length;
  let position = offset;
  while (tar.length < end) {
    const count = readSync(fd, tar.bytes, tar.length, end - tar.length, position);
    if (count === 0) tar.pad(end - tar.length);
    tar.length += count;
    position += count;
  }
}
