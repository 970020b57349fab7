// Describes paths and hashes files without packing them, to distinguish changed content from a changed stat.
import { createHash } from "node:crypto";
import { closeSync, readSync } from "node:fs";
import { createStat, statOpen } from "../../platform/file-stat.ts";
import type { CapturedItem, CaptureItem, HashTask, MissedItem, TaskResult } from "../model/capture-item.ts";
import { OpenTree } from "../model/open-tree.ts";
import { describeFile, describeOther, livePath, openItem } from "./describe-path.ts";
import { explainMiss, refuseLiveDatabase } from "./read-failure.ts";
import { changedWhileReading } from "./torn.ts";

export function hashTask(task: HashTask): TaskResult {
  const captured: CapturedItem[] = [];
  const missed: MissedItem[] = [];
  using tree = new OpenTree(task.root);
  for (const item of task.items) {
    try {
      captured.push(hashItem(tree, item));
    } catch (error) {
      missed.push(explainMiss(item, error));
    }
  }
  return { captured, missed };
}

const HASH_CHUNK = 1 << 20;
let hashBuffer: Buffer | undefined;

function hashItem(tree: OpenTree, item: CaptureItem): CapturedItem {
  const live = () => livePath(tree, item);
  if (item.type !== "file") return describeOther(item, live());
  const fd = openItem(tree, item);
  try {
    const before = statOpen(fd, createStat());
    const described = describeFile(item, live, before, fd);
    const { size, extents } = described.entry;
    const digest = createHash("sha256");
    hashBuffer ??= Buffer.allocUnsafeSlow(HASH_CHUNK);
    for (const [offset, length] of extents ?? [[0, size] as const]) {
      let done = 0;
      while (done < length) {
        const count = readSync(fd, hashBuffer, 0, Math.min(HASH_CHUNK, length - done), offset + done);
        if (count === 0) break;
        if (offset + done === 0 && item.source === undefined)
          refuseLiveDatabase(live, hashBuffer.subarray(0, count), before.ino);
        digest.update(hashBuffer.subarray(0, count));
        done += count;
      }
    }
    const torn = changedWhileReading(before, statOpen(fd, createStat()));
    described.entry.sha256 = digest.digest("hex");
    if (torn !== undefined) described.torn = torn;
    return described;
  } finally {
    closeSync(fd);
  }
}
