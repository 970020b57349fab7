// File names are bytes on disk and strings in memory. Valid UTF-8 is decoded; any other byte 0xNN becomes the lone surrogate
// U+DCNN, which valid text never contains (Python's surrogateescape), so that encoding is exact and JSON can represent it.
// Paths are relative to the cell and use `/`; the cell itself is ".".

const REPLACEMENT = "\ufffd";
const ESCAPED = /[\udc80-\udcff]/;
const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

export function decodePath(bytes: Uint8Array): string {
  const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("utf8");
  return text.includes(REPLACEMENT) ? decodeExactly(bytes) : text;
}

export function encodePath(path: string): Buffer {
  if (!ESCAPED.test(path)) return Buffer.from(path);
  const parts: Buffer[] = [];
  let start = 0;
  for (let i = 0; i < path.length; i += 1) {
    const unit = path.charCodeAt(i);
    if (unit < 0xd800 || unit > 0xdfff) continue;
    if (unit < 0xdc00) {
      i += 1; // the high half of a pair: skip the low half, which is not an escape
      continue;
    }
    parts.push(Buffer.from(path.slice(start, i)), Buffer.of(unit - 0xdc00));
    start = i + 1;
  }
  parts.push(Buffer.from(path.slice(start)));
  return Buffer.concat(parts);
}

/** The argument for a file-system call: a string, or bytes where the name is not UTF-8. */
export function systemPath(path: string): string | Buffer {
  return ESCAPED.test(path) ? encodePath(path) : path;
}

/** The longest path that a call accepts, including the terminating NUL. */
const PATH_MAX_BYTES = process.platform === "darwin" ? 1024 : 4096;

export function isTooLong(path: string): boolean {
  // At most three bytes per UTF-16 unit: short paths need no encoding.
  return path.length * 3 >= PATH_MAX_BYTES && encodePath(path).length >= PATH_MAX_BYTES;
}

/** "." is the cell itself. */
export function joinPath(directory: string, name: string): string {
  return directory === "." ? name : `${directory}/${name}`;
}

export function parentPath(path: string): string {
  const slash = path.lastIndexOf("/");
  return slash < 0 ? "." : path.slice(0, slash);
}

const SLASH = 0x2f;

/**
 * Sorts each directory before its contents and its contents before everything else: a slash is the lowest character. tar
 * considers a directory complete, and closes it, when a path outside of it follows.
 */
export function comparePaths(a: string, b: string): number {
  if (a === b) return 0;
  if (a === ".") return -1;
  if (b === ".") return 1;
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i += 1) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x === y) continue;
    if (x === SLASH) return -1;
    return y === SLASH || x > y ? 1 : -1;
  }
  return a.length - b.length;
}

function decodeExactly(bytes: Uint8Array): string {
  let text = "";
  let i = 0;
  while (i < bytes.length) {
    const length = sequenceLength(bytes, i);
    if (length === 0) {
      text += String.fromCharCode(0xdc00 + bytes[i]!);
      i += 1;
    } else {
      text += strict.decode(bytes.subarray(i, i + length));
      i += length;
    }
  }
  return text;
}

/** Length of the valid UTF-8 sequence at this offset; 0 if there is none. */
function sequenceLength(bytes: Uint8Array, at: number): number {
  const first = bytes[at]!;
  const length = first < 0x80 ? 1 : first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  try {
    strict.decode(bytes.subarray(at, at + length));
    return at + length <= bytes.length ? length : 0;
  } catch {
    return 0;
  }
}
