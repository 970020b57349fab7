// The end of a log, read backwards in one bounded read.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

const WINDOW_BYTES = 64 * 1024;
const LINE_LIMIT = 2000;

/** The last lines of a file; none when it cannot be read. Bytes that are no text become replacement characters. */
export function readLastLines(
  path: string,
  count: number,
  { windowBytes = WINDOW_BYTES, from = 0 }: { windowBytes?: number; from?: number } = {},
): string[] {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    return [];
  }
  try {
    const { size } = fstatSync(fd);
    // Shorter than where it was to begin: it was rotated since, and all of it is newer.
    const begin = from <= size ? from : 0;
    const length = Math.min(size - begin, windowBytes);
    const buffer = Buffer.alloc(length);
    const read = readSync(fd, buffer, 0, length, size - length);
    const lines = buffer.toString("utf8", 0, read).split(/\r?\n/);
    if (lines.at(-1) === "") lines.pop();
    // A window that begins inside a line begins with a part of it.
    if (begin + length < size && lines.length > 1) lines.shift();
    return lines.slice(-count).map((line) => line.slice(0, LINE_LIMIT));
  } catch {
    return [];
  } finally {
    closeSync(fd);
  }
}
