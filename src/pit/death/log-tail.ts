// The last lines of a log, in one bounded read, and which of them say why the program ended.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { readableText } from "../terminal/readable.ts";

const WINDOW_BYTES = 64 * 1024;
const LINE_LIMIT = 2000;

export interface TailOptions {
  readonly windowBytes?: number;
  /** Ignore earlier bytes. */
  readonly from?: number;
  /** What was written to a terminal becomes plain text. */
  readonly isTerminal?: boolean;
}

/** Empty when the file cannot be read. Invalid UTF-8 becomes replacement characters. */
export function readLogTail(
  path: string,
  count: number,
  { windowBytes = WINDOW_BYTES, from = 0, isTerminal = false }: TailOptions = {},
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
    const text = isTerminal ? readableText(buffer.subarray(0, read)) : buffer.toString("utf8", 0, read);
    const lines = text.split(/\r?\n/);
    if (lines.at(-1) === "") lines.pop();
    // The window starts inside a line: drop the fragment.
    if (start + length < size && lines.length > 1) lines.shift();
    return dropFrames(lines.map((line) => line.slice(0, LINE_LIMIT))).slice(-count);
  } catch {
    return [];
  } finally {
    closeSync(fd);
  }
}

const FRAME = /^\s+at \S/;

/** Keeps the first frame of a stack trace: the message is above the trace, which may be longer than the tail. */
function dropFrames(lines: readonly string[]): string[] {
  return lines.filter((line, n) => !FRAME.test(line) || n === 0 || !FRAME.test(lines[n - 1]!));
}

const MESSAGE =
  /^(?:Uncaught )?[\w.$]*(?:Error|Exception)\b.*:|^panic: |^thread '.*' panicked|^fatal(?: error)?: /i;

/** The last `count` lines. The message of the last exception is always among them: details may follow it. */
export function lastLogLines(lines: readonly string[], count: number): string[] {
  const filled = lines.filter((line) => line.trim() !== "");
  const message = filled.findLastIndex((line) => MESSAGE.test(line));
  if (message === -1 || message >= filled.length - count) return filled.slice(-count);
  return [filled[message]!, ...(count > 1 ? filled.slice(1 - count) : [])];
}
