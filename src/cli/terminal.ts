// The two streams of a command: data on stdout, talk on stderr. Writes are synchronous and straight to the descriptor:
// nothing is lost at exit, and the hot path does not pay for Node's stream machinery.
import { fstatSync, writeSync } from "node:fs";
import { systemErrorCode } from "../platform/errors.ts";

export interface Terminal {
  /** Data: what the caller asked for. Bytes are what another program printed, passed on as they are. */
  out(text: string | Uint8Array): void;
  /** Talk: what a person wants to know meanwhile. */
  err(text: string | Uint8Array): void;
  readonly isInteractive: boolean;
  readonly outIsTerminal: boolean;
  readonly errIsTerminal: boolean;
  readonly columns: number;
}

/** Thrown when the reader of our output has gone (`lazarus scan | head`): not an error, just the end. */
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

/** node:tty costs 3 ms to load, and what is no device is no terminal. */
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
