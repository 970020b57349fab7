// Packs what was appended to a file whose other bytes are unchanged. Stat does not distinguish an append from a rewrite, so the old
// bytes are read and hashed (1.3 GB/s), and compared with the digest in the last checkpoint; only the new ones are stored.
import { createHash, type Hash } from "node:crypto";
import { closeSync, readSync } from "node:fs";
import { refuseExhaustion, systemErrorCode } from "../../platform/errors.ts";
import { createStat, statOpen } from "../../platform/file-stat.ts";
import type { CapturedItem, CaptureItem, MissedItem, TailTask } from "../model/capture-item.ts";
import { OpenTree } from "../model/open-tree.ts";
import { padding } from "../tar/header.ts";
import { encodeTail } from "../tar/tail.ts";
import { describeFile, livePath, openItem } from "./describe-path.ts";
import { readInto, TarBuffer } from "./tar-buffer.ts";
import { changedWhileReading, isHot, statWhenQuiet } from "./torn.ts";

/** Packed as one member: a file that has grown by more is packed as a whole, in pieces. */
const MAX_TAIL_BYTES = 4 << 20;
const ATTEMPTS = 3;
const CHUNK_BYTES = 1 << 20;

interface Packed {
  readonly raw: Buffer;
  /** The file, with `at` and `stored` of its tail; none if it is to be packed as a whole. */
  readonly captured: CapturedItem[];
  readonly missed: MissedItem[];
}

const NOT_CONTINUED: Packed = { raw: Buffer.alloc(0), captured: [], missed: [] };

export function packTail({ root, item }: TailTask): Packed {
  try {
    using tree = new OpenTree(root);
    for (let attempt = 1; ; attempt += 1) {
      const packed = packOnce(tree, item);
      if (packed.captured[0]?.torn === undefined || attempt === ATTEMPTS) return packed;
    }
  } catch (error) {
    refuseExhaustion(error, `reading ${item.path}`, ".");
    // Packing the whole file will report what is wrong with it.
    if (systemErrorCode(error) === undefined) throw error;
    return NOT_CONTINUED;
  }
}

function packOnce(tree: OpenTree, item: CaptureItem): Packed {
  const from = item.grownFrom!;
  const live = () => livePath(tree, item);
  const fd = openItem(tree, item);
  try {
    const before = statWhenQuiet(fd);
    const tail = before.size - from.size;
    if (tail <= 0 || tail > MAX_TAIL_BYTES) return NOT_CONTINUED;
    const described = describeFile(item, live, before, fd);
    if (described.entry.extents !== undefined) return NOT_CONTINUED;
    const digest = createHash("sha256");
    hashStart(fd, from.size, digest);
    if (digest.copy().digest("hex") !== from.sha256) return NOT_CONTINUED;
    const header = encodeTail({ ...described.entry, after: from.size }, { storedSize: tail });
    const tar = new TarBuffer(header.length + tail + padding(tail));
    tar.append(header);
    readInto(fd, tar, from.size, tail);
    digest.update(tar.bytes.subarray(header.length, tar.length));
    tar.pad(padding(tail));
    const after = statOpen(fd, createStat());
    if (after.size < before.size) return NOT_CONTINUED;
    described.entry.sha256 = digest.digest("hex");
    const torn =
      changedWhileReading(before, after) ?? (isHot(before) ? "it was written while being read" : undefined);
    if (torn !== undefined) described.torn = torn;
    described.at = header.length;
    described.stored = tail;
    return { raw: tar.bytes.subarray(0, tar.length), captured: [described], missed: [] };
  } finally {
    closeSync(fd);
  }
}

function hashStart(fd: number, length: number, digest: Hash): void {
  const buffer = Buffer.allocUnsafe(Math.min(CHUNK_BYTES, length));
  for (let done = 0; done < length; ) {
    const count = readSync(fd, buffer, 0, Math.min(buffer.length, length - done), done);
    if (count === 0) return;
    digest.update(buffer.subarray(0, count));
    done += count;
  }
}
