// A tar stream under construction in one buffer, which grows when files have grown since they were listed.
import { readSync } from "node:fs";

export class TarBuffer {
  bytes: Buffer;
  length = 0;

  /** In `memory`, if that is large enough. */
  constructor(capacity: number, memory?: SharedArrayBuffer) {
    this.bytes =
      memory !== undefined && memory.byteLength >= capacity
        ? Buffer.from(memory)
        : Buffer.allocUnsafeSlow(capacity);
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

/** Reads exactly `length` bytes. If the file has shrunk, the rest is zeros; the stat after reading reveals the change. */
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
