// How the tar stream shows a continued file: the appended bytes are a separate entry, next to the file and under a name
// of Lazarus, so that tar never replaces a file with its tail. The file and its tails, in order of offset, are the whole
// content. Pure.
import type { Entry } from "../model/entry.ts";
import { joinPath, parentPath } from "../model/path-bytes.ts";
import { encodeHeader, type HeaderOptions } from "./header.ts";

/** The name of an entry that holds what follows the first `after` bytes of a file; the path itself when it holds all. */
export function tailPath(path: string, after: number | undefined): string {
  if (after === undefined) return path;
  const name = path.slice(path.lastIndexOf("/") + 1);
  return joinPath(parentPath(path), `.lazarus-from-${after}-${name}`);
}

/** The header of an entry, which may be the tail of a continued file. */
export function encodeTail(entry: Entry & { readonly after?: number }, options: HeaderOptions): Buffer {
  return encodeHeader({ ...entry, path: tailPath(entry.path, entry.after) }, options);
}
