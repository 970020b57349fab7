// Reads flow files. Bounded, does not follow a symbolic link at the end of the path, does not block on a FIFO, and never
// throws because of the content, since untrusted processes write here. A usual file takes three system calls; only an
// empty, large or special file takes more.
import { closeSync, constants, fstatSync, openSync, readSync } from "node:fs";
import { systemErrorCode } from "../../platform/errors.ts";
import { checkDocument, FLOW_LIMIT_BYTES, type FlowDocument } from "./document.ts";
import { parseExact } from "./python-json.ts";
import type { FlowPlace } from "./workspace.ts";

/** `unreadable` does not mean that the content is bad: no permission, a directory, or an I/O error. */
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
  return parseFlow(text, place.stem);
}

export function parseFlow(text: string, stem: string): FlowReading {
  let value: unknown;
  try {
    value = parseExact(text);
  } catch {
    return bad("not-json", text.trim() === "" ? "is empty" : "is not JSON");
  }
  const verdict = checkDocument(value, stem);
  return verdict.ok ? { state: "ok", document: verdict.document } : bad(verdict.why, verdict.reason);
}

/** The whole text of a regular file, or why it cannot be read. */
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
    return bad("too-large", `has ${stat.size} bytes, more than the limit of ${limitBytes}`);
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
