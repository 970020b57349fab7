// The two output streams: data on stdout, messages on stderr. Writes are synchronous and go directly to the descriptor,
// so that nothing is lost at exit and the hot path does not load Node's streams.
import { fstatSync, writeSync } from "node:fs";
import { systemErrorCode } from "../platform/errors.ts";

export interface Terminal {
  /** Data on stdout. Bytes are output of another program, passed through unchanged. */
  out(text: string | Uint8Array): void;
  /** Messages on stderr. */
  err(text: string | Uint8Array): void;
  readonly isInteractive: boolean;
  readonly outIsTerminal: boolean;
  readonly errIsTerminal: boolean;
  readonly columns: number;
}

/** Thrown when the reader of our output has exited (`lazarus scan | head`). Not an error. */
export class OutputClosed extends Error {}

const RETRY_MS = 2;
const DEFAULT_COLUMNS = 80;

export const processTerminal: Terminal = {
  out: (text) => writeAll(1, text),
  err: (text) => writeAll(2, text),
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

/** Checks for a device first, because loading node:tty costs 3 ms. */
function isatty(fd: number): boolean {
  return isDevice(fd) && process.getBuiltinModule("node:tty").isatty(fd);
}

function isDevice(fd: number): boolean {
  try {
    return fstatSync(fd).isCharacterDevice();
  } catch {
    return false;
  }
}

function writeAll(fd: number, text: string | Uint8Array): void {
  const bytes = typeof text === "string" ? Buffer.from(text) : text;
  let offset = 0;
  while (offset < bytes.length) {
    try {
      offset += writeSync(fd, bytes, offset);
    } catch (error) {
      const code = systemErrorCode(error);
      if (code === "EPIPE") throw new OutputClosed();
      if (code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS);
    }
  }
}
