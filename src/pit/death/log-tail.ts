// The last lines of a log, in one bounded read.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";

const WINDOW_BYTES = 64 * 1024;
const LINE_LIMIT = 2000;

/** Empty when the file cannot be read. Invalid UTF-8 becomes replacement characters. `from`: ignore earlier bytes. */
export function readLogTail(
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
    // Shorter than `from`: the log was rotated since, so all of it is newer.
    const start = from <= size ? from : 0;
    const length = Math.min(size - start, windowBytes);
    const buffer = Buffer.alloc(length);
    const read = readSync(fd, buffer, 0, length, size - length);
    const lines = buffer.toString("utf8", 0, read).split(/\r?\n/);
    if (lines.at(-1) === "") lines.pop();
    // The window starts inside a line: drop the fragment.
    if (start + length < size && lines.length > 1) lines.shift();
    return lines.slice(-count).map((line) => line.slice(0, LINE_LIMIT));
  } catch {
    return [];
  } finally {
    closeSync(fd);
  }
}
