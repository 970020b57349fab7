// Unpacks checkpoints with umoci, as root or rootless. Without root, umoci cannot set owners and records them in an
// attribute; `withRecordedOwner` moves them to the uid and gid of a listed path.
import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { isRoot } from "../plain-user.ts";
import type { ListedPath } from "./real-cell.ts";

const OWNER = "user.rootlesscontainers";

/** Unpacks an image into a bundle and returns the root of its files. */
export function unpackWithUmoci(image: string, bundle: string): string {
  const rootless = isRoot ? [] : ["--rootless"];
  execFileSync("umoci", ["unpack", ...rootless, "--image", image, bundle], { stdio: "pipe" });
  return join(bundle, "rootfs");
}

/** Replaces uid and gid by the recorded ones. Symbolic links have no user attributes and keep theirs. */
export function withRecordedOwner(row: ListedPath): ListedPath {
  if (isRoot) return row;
  const { [OWNER]: owner, ...rest } = (row.xattrs ?? {}) as Record<string, string>;
  if (owner === undefined) return row;
  const { xattrs: _, ...bare } = row;
  const xattrs = Object.keys(rest).length === 0 ? {} : { xattrs: rest };
  return { ...bare, ...xattrs, ...decodeOwner(Buffer.from(owner, "hex")) } as ListedPath;
}

/** The message rootlesscontainers.Resource of Protocol Buffers: uid is field 1, gid field 2, both varints. */
function decodeOwner(bytes: Buffer): { uid: number; gid: number } {
  const fields = new Map<number, number>();
  for (let at = 0; at < bytes.length; ) {
    const field = bytes[at++]! >> 3;
    let value = 0;
    for (let shift = 1; ; shift *= 128) {
      const byte = bytes[at++]!;
      value += (byte & 0x7f) * shift;
      if (byte < 0x80) break;
    }
    fields.set(field, value);
  }
  return { uid: fields.get(1) ?? 0, gid: fields.get(2) ?? 0 };
}
