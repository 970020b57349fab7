// Compares a restored tree with a listing. Walks the directory, stats and hashes every path, and shares no code with
// restore, so that a drill is an independent check. The tree is a scratch copy: a path that its owner may not
// read is made readable after its mode was compared.
import { createHash } from "node:crypto";
import {
  type BigIntStats,
  chmodSync,
  closeSync,
  constants,
  lstatSync,
  openSync,
  readdirSync,
  readlinkSync,
  readSync,
} from "node:fs";
import type { Posix } from "../../platform/posix.ts";
import type { Entry, Listing } from "../model/entry.ts";
import { decodePath, encodePath, joinPath } from "../model/path-bytes.ts";

export interface Difference {
  readonly path: string;
  /** For example "mode is 644, should be 600". */
  readonly what: string;
}

export interface CompareOptions {
  /** Whether this process was able to restore owners. */
  readonly owners: boolean;
  readonly posix: Posix | undefined;
}

const CHUNK_BYTES = 1 << 20;
const PROGRESS_PATHS = 512;

export function compareTree(
  root: string,
  listing: Listing,
  options: CompareOptions,
  onProgress: (done: number, total: number) => void = () => {},
): Difference[] {
  const found: Difference[] = [];
  const seen = new Set<string>();
  const inodeOfGroup = new Map<string, bigint>();
  const groupOfInode = new Map<bigint, string>();
  const buffer = Buffer.allocUnsafe(CHUNK_BYTES);

  const compareLinks = (entry: Entry, stat: BigIntStats): string | undefined => {
    const name = entry.group ?? `alone: ${entry.path}`;
    const inode = inodeOfGroup.get(name) ?? stat.ino;
    const group = groupOfInode.get(stat.ino) ?? name;
    inodeOfGroup.set(name, inode);
    groupOfInode.set(stat.ino, group);
    if (inode !== stat.ino) return "is not linked with its hard links";
    return group === name ? undefined : "is linked with another file";
  };

  const visit = (path: string, bytes: Buffer) => {
    seen.add(path);
    if (seen.size % PROGRESS_PATHS === 0) onProgress(seen.size, listing.size);
    const stat = lstatSync(bytes, { bigint: true });
    if (!options.owners) grantOwnerAccess(bytes, stat);
    const entry = listing.get(path);
    if (entry === undefined) found.push({ path, what: "should not be there" });
    else {
      const problems = [
        ...compareMetadata(entry, stat, bytes, options),
        ...compareContent(entry, stat, bytes, buffer),
      ];
      const linked = entry.type === "file" && stat.isFile() ? compareLinks(entry, stat) : undefined;
      for (const what of linked === undefined ? problems : [...problems, linked]) found.push({ path, what });
    }
    if (!stat.isDirectory()) return;
    for (const name of readdirSync(bytes, { encoding: "buffer" })) {
      visit(joinPath(path, decodePath(name)), Buffer.concat([bytes, Buffer.from("/"), name]));
    }
  };

  visit(".", encodePath(root));
  for (const path of listing.keys()) if (!seen.has(path)) found.push({ path, what: "is missing" });
  return found;
}

const READ_AND_SEARCH = 0o500n;

function grantOwnerAccess(bytes: Buffer, stat: BigIntStats): void {
  if (!stat.isDirectory() && !stat.isFile()) return;
  const needed = stat.isDirectory() ? READ_AND_SEARCH : READ_AND_SEARCH & 0o400n;
  if ((stat.mode & needed) !== needed) chmodSync(bytes, Number((stat.mode | needed) & 0o7777n));
}

function compareMetadata(
  entry: Entry,
  stat: BigIntStats,
  bytes: Buffer,
  { owners, posix }: CompareOptions,
): string[] {
  const type = stat.isFile()
    ? "file"
    : stat.isDirectory()
      ? "directory"
      : stat.isSymbolicLink()
        ? "symlink"
        : stat.isFIFO()
          ? "fifo"
          : "something else";
  if (type !== entry.type) return [`is a ${type}, should be a ${entry.type}`];
  const problems: string[] = [];
  const expect = (field: string, actual: string, expected: string) => {
    if (actual !== expected) problems.push(`${field} is ${actual}, should be ${expected}`);
  };
  if (type !== "symlink") expect("mode", (Number(stat.mode) & 0o7777).toString(8), entry.mode.toString(8));
  if (owners) expect("owner", `${stat.uid}:${stat.gid}`, `${entry.uid}:${entry.gid}`);
  const timeNs = BigInt(entry.mtimeSec) * 1_000_000_000n + BigInt(entry.mtimeNs);
  if (posix !== undefined) expect("time in nanoseconds", String(stat.mtimeNs), String(timeNs));
  if (type === "symlink") {
    const target = decodePath(readlinkSync(bytes, { encoding: "buffer" }));
    expect("target", JSON.stringify(target), JSON.stringify(entry.target ?? ""));
  }
  if (type === "file") expect("size", String(stat.size), String(entry.size));
  if (posix !== undefined) {
    const attributes = posix
      .listXattrs(bytes)
      .map(({ name, value }) => `${name}=${value.toString("base64")}`);
    const wanted = (entry.xattrs ?? []).map(([name, base64]) => `${name}=${base64}`);
    expect("attributes", attributes.sort().join(" "), wanted.sort().join(" "));
  }
  return problems;
}

/** The digest covers only the extents; holes must read as zeros. */
function compareContent(entry: Entry, stat: BigIntStats, bytes: Buffer, buffer: Buffer): string[] {
  if (entry.type !== "file" || !stat.isFile()) return [];
  const hash = createHash("sha256");
  const fd = openSync(bytes, constants.O_RDONLY | constants.O_NOFOLLOW);
  let zeros = true;
  try {
    const read = (from: number, to: number, use: (chunk: Buffer) => void) => {
      for (let at = from; at < to; ) {
        const count = readSync(fd, buffer, 0, Math.min(buffer.length, to - at), at);
        if (count === 0) return;
        use(buffer.subarray(0, count));
        at += count;
      }
    };
    let position = 0;
    for (const [offset, length] of entry.extents ?? [[0, entry.size] as const]) {
      read(position, offset, (chunk) => {
        zeros &&= chunk.every((byte) => byte === 0);
      });
      read(offset, offset + length, (chunk) => void hash.update(chunk));
      position = offset + length;
    }
    read(position, entry.size, (chunk) => {
      zeros &&= chunk.every((byte) => byte === 0);
    });
  } finally {
    closeSync(fd);
  }
  const problems = hash.digest("hex") === entry.sha256 ? [] : ["content differs"];
  return zeros ? problems : [...problems, "a hole contains data"];
}
