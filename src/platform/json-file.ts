// JSON files: written durably with two-space indent and a final newline. Reads are bounded, do not follow a symbolic link at
// the end of the path and do not block on a FIFO, since untrusted processes can write to these directories.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import type { Disk } from "./disk.ts";
import { type ReplaceOptions, replaceFile } from "./durable.ts";
import { systemErrorCode } from "./errors.ts";

export type JsonObject = Record<string, unknown>;

export type JsonReading =
  | { readonly ok: true; readonly value: JsonObject }
  | { readonly ok: false; readonly why: "absent" | "unreadable" | "invalid"; readonly reason: string };

const DEFAULT_LIMIT_BYTES = 1024 * 1024;
const OPEN_FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;

export function formatJson(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`;
}

export function writeJsonFile(disk: Disk, path: string, value: unknown, options?: ReplaceOptions): void {
  replaceFile(disk, path, formatJson(value), options);
}

/** ES2026; available in Node 24, but not yet in TypeScript's library. */
const { rawJSON } = JSON as unknown as { rawJSON(source: string): unknown };

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;

/**
 * A reviver for documents that are rewritten: a number that JavaScript cannot represent, such as a time in nanoseconds,
 * keeps its text. It cannot be used in calculations.
 */
export const exactNumbers: Reviver = (_, value, { source }) => {
  if (typeof value !== "number" || source === undefined) return value;
  const exact = Number.isInteger(value) ? Number.isSafeInteger(value) : Number.isFinite(value);
  return exact ? value : rawJSON(source);
};

/** Reads a JSON object. Never throws: a failure is returned with its reason. */
export function readJsonFile(
  path: string,
  limitBytes: number = DEFAULT_LIMIT_BYTES,
  reviver?: Reviver,
): JsonReading {
  let fd: number;
  try {
    fd = openSync(path, OPEN_FLAGS);
  } catch (error) {
    const code = systemErrorCode(error) ?? "error";
    if (code === "ENOENT" || code === "ENOTDIR") return { ok: false, why: "absent", reason: "no such file" };
    return { ok: false, why: "unreadable", reason: code === "ELOOP" ? "a symbolic link, not a file" : code };
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) {
      return {
        ok: false,
        why: "unreadable",
        reason: stat.isDirectory() ? "a directory, not a file" : "not a regular file",
      };
    }
    if (stat.size > limitBytes) {
      return {
        ok: false,
        why: "unreadable",
        reason: `${stat.size} bytes, more than the ${limitBytes} allowed`,
      };
    }
    return parseObject(readWhole(fd, stat.size), reviver);
  } catch (error) {
    return { ok: false, why: "unreadable", reason: systemErrorCode(error) ?? String(error) };
  } finally {
    closeSync(fd);
  }
}

function parseObject(text: string, reviver: Reviver | undefined): JsonReading {
  let value: unknown;
  try {
    value = JSON.parse(text, reviver as Parameters<typeof JSON.parse>[1]);
  } catch {
    return { ok: false, why: "invalid", reason: "not JSON" };
  }
  if (!isJsonObject(value)) return { ok: false, why: "invalid", reason: "JSON, but not an object" };
  return { ok: true, value };
}

export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function readWhole(fd: number, size: number): string {
  const buffer = Buffer.allocUnsafe(size);
  let length = 0;
  while (length < size) {
    const count = readSync(fd, buffer, length, size - length, null);
    if (count === 0) break;
    length += count;
  }
  return buffer.toString("utf8", 0, length);
}
