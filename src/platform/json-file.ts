// JSON as Lazarus writes it: two-space indent, a final newline, durable. Reading is bounded and never follows a link
// at the end of the path nor waits on a FIFO, since these files lie where agents and strangers can write.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import type { Disk } from "./disk.ts";
import { replaceFile, type WriteOptions } from "./durable.ts";
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

export function writeJsonFile(disk: Disk, path: string, value: unknown, options?: WriteOptions): void {
  replaceFile(disk, path, formatJson(value), options);
}

/** Reads a JSON object. Never throws: what is wrong comes back as words. */
export function readJsonFile(path: string, limitBytes: number = DEFAULT_LIMIT_BYTES): JsonReading {
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
    return parseObject(readWhole(fd, stat.size));
  } catch (error) {
    return { ok: false, why: "unreadable", reason: systemErrorCode(error) ?? String(error) };
  } finally {
    closeSync(fd);
  }
}

function parseObject(text: string): JsonReading {
  let value: unknown;
  try {
    value = JSON.parse(text);
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
