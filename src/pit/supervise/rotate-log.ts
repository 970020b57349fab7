// Keeps a log within bounds while its writer goes on: the end is copied, the file is emptied in place. The keeper does the
// same by itself every ten seconds; a pit that runs looks every second.
import {
  closeSync,
  copyFileSync,
  existsSync,
  openSync,
  readSync,
  renameSync,
  statSync,
  truncateSync,
  writeFileSync,
} from "node:fs";

/** Returns whether it was over its limit. */
export function rotateLog(path: string, limitBytes: number, count: number): boolean {
  const size = statSync(path, { throwIfNoEntry: false })?.size ?? 0;
  if (size <= limitBytes) return false;
  for (let n = count; n > 1; n -= 1)
    if (existsSync(`${path}.${n - 1}`)) renameSync(`${path}.${n - 1}`, `${path}.${n}`);
  if (count > 0) {
    if (size <= 2 * limitBytes) copyFileSync(path, `${path}.1`);
    else writeFileSync(`${path}.1`, readEnd(path, size, limitBytes), { mode: 0o600 });
  }
  truncateSync(path, 0);
  return true;
}

function readEnd(path: string, size: number, length: number): Buffer {
  const buffer = Buffer.allocUnsafe(length);
  const fd = openSync(path, "r");
  try {
    return buffer.subarray(0, readSync(fd, buffer, 0, length, size - length));
  } finally {
    closeSync(fd);
  }
}
