// Copies an effect history: into the vault at every checkpoint, into an archive, to a fork or an imported
// mission, and back next to a cell whose history was lost. Only appends the lines that the target lacks. A copy to an
// empty target has the same bytes, so that positions stay valid.
import { dirname } from "node:path";
import { crashPoint } from "../platform/crash-point.ts";
import type { Disk } from "../platform/disk.ts";
import { makeDirectory } from "../platform/durable.ts";
import { asLazarusError } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import { decodeLine } from "./line.ts";
import { readFrom } from "./read-from.ts";

/** The complete lines of a history; empty when there is none. */
export function readHistoryBytes(file: string): Buffer {
  const bytes = readFrom(file, 0);
  return bytes.subarray(0, bytes.lastIndexOf("\n") + 1);
}

/**
 * Adds the lines of another history to `file`, durably. Returns where a position of that history is in the result: the
 * same, or 0 when the file began differently, so that everything counts as later.
 */
export function mergeHistory(machine: Machine, file: string, bytes: Buffer, given = 0): number {
  // An archive may contain any number here.
  const position = Math.min(given, bytes.length);
  // Including a torn last line, which is completed if the lines are the same.
  const present = readFrom(file, 0);
  if (present.length < bytes.length && bytes.subarray(0, present.length).equals(present)) {
    append(machine.disk, file, bytes.subarray(present.length));
    return position;
  }
  if (!present.subarray(0, bytes.length).equals(bytes)) {
    const known = new Set(present.toString("utf8").split("\n"));
    const missing = bytes
      .toString("utf8")
      .split("\n")
      .filter((line) => line !== "" && !known.has(line));
    const lines = missing.filter((line) => decodeLine(line) !== undefined).map((line) => `${line}\n`);
    // The first newline ends a torn line.
    if (lines.length > 0) append(machine.disk, file, Buffer.from(`\n${lines.join("")}`));
  }
  const isSame =
    present.length >= position && bytes.subarray(0, position).equals(present.subarray(0, position));
  return isSame ? position : 0;
}

function append(disk: Disk, file: string, bytes: Uint8Array): void {
  try {
    makeDirectory(disk, dirname(file));
    const fd = disk.openAppend(file, 0o600);
    try {
      disk.write(fd, bytes);
      crashPoint("effects.merge.written");
      disk.fsync(fd);
    } finally {
      disk.close(fd);
    }
    disk.fsyncDirectory(dirname(file));
  } catch (error) {
    throw asLazarusError(error, `writing the effect history ${file}`, dirname(file));
  }
}
