// The standard streams: data on stdout, messages on stderr. Writes are synchronous and go directly to the descriptor,
// so that nothing is lost at exit and the hot path does not load Node's streams.
import { fstatSync, readSync, writeSync } from "node:fs";
import { quietly, systemErrorCode } from "../platform/errors.ts";

export interface Terminal {
  /** Data on stdout. Bytes are output of another program, passed through unchanged. */
  out(text: string | Uint8Array): void;
  /** Messages on stderr; dropped when it is closed, so that they never change how a command ends. */
  err(text: string | Uint8Array): void;
  readonly isInteractive: boolean;
  readonly outIsTerminal: boolean;
  readonly errIsTerminal: boolean;
  readonly columns: number;
}

/** Thrown when the reader of stdout has exited (`lazarus scan | head`) or the terminal is gone. Not an error. */
export class OutputClosed extends Error {}

const RETRY_MS = 2;
const DEFAULT_COLUMNS = 80;

export const processTerminal: Terminal = {
  out: (text) => writeAll(1, text),
  err: (text) => {
    try {
      writeAll(2, text);
    } catch (error) {
      if (!(error instanceof OutputClosed)) throw error;
    }
  },
  get isInteractive() {
    return isatty(0) && isatty(2);
  },
  get outIsTerminal() {
    return isatty(1);
  },
  get errIsTerminal() {
    return isatty(2);
  },
  get columns() {
    return (isatty(1) ? process.stdout.columns : 0) || DEFAULT_COLUMNS;
  },
};

/** All of stdin, up to `limitBytes`; nothing from a terminal. Blocks until the writer closes it. */
export function readInput(limitBytes: number): string {
  if (isatty(0)) return "";
  const chunks: Buffer[] = [];
  let length = 0;
  while (length < limitBytes) {
    const chunk = Buffer.allocUnsafe(64 * 1024);
    const count = readChunk(chunk);
    if (count === 0) break;
    if (count !== undefined) chunks.push(chunk.subarray(0, count));
    length += count ?? 0;
  }
  return Buffer.concat(chunks).toString("utf8");
}

/** Undefined when the writer has not written yet; 0 at the end. */
function readChunk(chunk: Buffer): number | undefined {
  try {
    return readSync(0, chunk);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "EOF") return 0;
    if (code !== "EAGAIN") throw error;
    pause();
    return undefined;
  }
}

function pause(): void {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
}

/** Checks for a device first, because loading node:tty costs 3 ms. */
function isatty(fd: number): boolean {
  return isDevice(fd) && process.getBuiltinModule("node:tty").isatty(fd);
}

function isDevice(fd: number): boolean {
  return quietly(() => fstatSync(fd).isCharacterDevice()) ?? false;
}

function writeAll(fd: number, text: string | Uint8Array): void {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  let offset = 0;
  while (offset < bytes.length) {
    try {
      offset += writeSync(fd, bytes, offset);
    } catch (error) {
      const code = systemErrorCode(error);
      // A device with an I/O error is a terminal that was closed.
      if (code === "EPIPE" || (code === "EIO" && isDevice(fd))) throw new OutputClosed();
      if (code !== "EAGAIN") throw error;
      pause();
    }
  }
}
