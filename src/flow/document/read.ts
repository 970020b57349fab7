// Reads flow files: bounded, never through a link at the end of the path, never waiting on a FIFO, and never throwing
// for what is in them, since agents and strangers write here. A directory of 10,000 files costs three system calls
// each; everything rare (an empty, large or odd file) is looked at a second time.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { systemErrorCode } from "../../platform/errors.ts";
import { FLOW_LIMIT_BYTES, type FlowDocument, judgeDocument } from "./document.ts";
import { parseExact } from "./python-json.ts";
import type { FlowPlace } from "./workspace.ts";

/** `unreadable` says nothing about the file: it is forbidden, a directory, or the disk fails. */
export type Fault = "unreadable" | "not-a-file" | "too-large" | "not-json" | "schema" | "hash" | "newer";

export type FlowReading =
  | { readonly state: "ok"; readonly document: FlowDocument }
  | { readonly state: "absent" }
  | { readonly state: "bad"; readonly why: Fault; readonly reason: string; readonly cause?: unknown };

const FLAGS = constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW;
const FIRST_READ_BYTES = 64 * 1024;
let scratch: Buffer | undefined;

export function readFlow(place: FlowPlace): FlowReading {
  const text = readText(place.file, FLOW_LIMIT_BYTES);
  if (typeof text !== "string") return text;
  return judgeText(text, place.stem);
}

export function judgeText(text: string, stem: string): FlowReading {
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    return bad("not-json", text.trim() === "" ? "is empty" : "is not JSON");
  }
  const verdict = judgeDocument(value, stem);
  return verdict.ok ? { state: "ok", document: verdict.document } : bad(verdict.why, verdict.reason);
}

/** The whole text of a regular file, or what is wrong with it. */
export function readText(path: string, limitBytes: number): string | Exclude<FlowReading, { state: "ok" }> {
  scratch ??= Buffer.allocUnsafeSlow(FIRST_READ_BYTES);
  let fd: number;
  try {
    fd = openSync(path, FLAGS);
  } catch (error) {
    const code = systemErrorCode(error) ?? "error";
    if (code === "ENOENT" || code === "ENOTDIR") return { state: "absent" };
    if (code === "ELOOP") return bad("not-a-file", "is a symbolic link, not a file");
    return bad("unreadable", `cannot be opened (${code})`, error);
  }
  try {
    const length = readSync(fd, scratch, 0, FIRST_READ_BYTES, null);
    if (length > 0 && length < FIRST_READ_BYTES) return scratch.toString("utf8", 0, length);
    return readLarge(fd, limitBytes);
  } catch (error) {
    const code = systemErrorCode(error) ?? String(error);
    const reason = code === "EISDIR" ? "is a directory, not a file" : `cannot be read (${code})`;
    return bad("unreadable", reason, error);
  } finally {
    closeSync(fd);
  }
}

function readLarge(fd: number, limitBytes: number): string | Exclude<FlowReading, { state: "ok" }> {
  const stat = fstatSync(fd);
  if (!stat.isFile()) return bad("not-a-file", "is not a regular file");
  if (stat.size > limitBytes) {
    return bad("too-large", `has ${stat.size} bytes, more than the ${limitBytes} allowed`);
  }
  const buffer = Buffer.allocUnsafe(stat.size);
  let length = 0;
  while (length < stat.size) {
    const count = readSync(fd, buffer, length, stat.size - length, length);
    if (count === 0) break;
    length += count;
  }
  return buffer.toString("utf8", 0, length);
}

function bad(why: Fault, reason: string, cause?: unknown): Extract<FlowReading, { state: "bad" }> {
  return { state: "bad", why, reason, cause };
}
