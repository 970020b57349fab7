// Reads the file of an effect history. Only a regular file is one: a link, FIFO or directory in its place is refused, and is
// neither followed nor waited for. Appends come after a read. Read-only.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { dirname } from "node:path";
import { asLazarusError, LazarusError, systemErrorCode } from "../platform/errors.ts";

const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

/** The bytes from `from` up to `to`; none when the file does not exist. */
export function readFrom(file: string, from: number, to = Number.POSITIVE_INFINITY): Buffer {
  let fd: number;
  try {
    fd = openSync(file, OPEN_FLAGS);
  } catch (error) {
    const code = systemErrorCode(error);
    if (code === "ENOENT") return Buffer.alloc(0);
    // A link, or a socket.
    if (code === "ELOOP" || code === "ENXIO") throw notAFile(file);
    throw failed(file, error);
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) throw notAFile(file);
    const length = Math.min(stat.size, to) - from;
    if (length <= 0) return Buffer.alloc(0);
    const bytes = Buffer.allocUnsafe(length);
    let done = 0;
    while (done < length) {
      const count = readSync(fd, bytes, done, length - done, from + done);
      if (count === 0) break;
      done += count;
    }
    return bytes.subarray(0, done);
  } catch (error) {
    throw failed(file, error);
  } finally {
    closeSync(fd);
  }
}

function failed(file: string, error: unknown): LazarusError {
  return asLazarusError(error, `reading the effect history ${file}`, dirname(file));
}

function notAFile(file: string): LazarusError {
  return new LazarusError("DISK_IO", `the effect history ${file} is not a regular file`, {
    hint: `ls -l ${file}; move it away: the next restore takes the history from the vault`,
  });
}
