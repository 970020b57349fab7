// Packs small files together, about a megabyte per member: enough to compress well, little enough to inflate for one
// file. A file and its hard links share a member.
import type {
  CapturedItem,
  CaptureItem,
  CaptureTask,
  MissedItem,
  Packed,
  TaskResult,
} from "../model/capture-item.ts";
import type { TreeRoot } from "../model/cell-tree.ts";
import type { LayerWriter } from "../vault/layer-writer.ts";
import type { TocEntry } from "../vault/toc-row.ts";
import { bytesOf, type CapturePool, totalBytesOf } from "./pool.ts";

/** Where a layer's items come from and go to. */
export interface PackTarget {
  readonly root: TreeRoot;
  readonly codec: "gzip" | "zstd";
  readonly writer: LayerWriter;
  readonly pool: CapturePool;
  readonly onBytes: (count: number) => void;
}

/** Tasks whose results are written to a layer in their order. */
export interface PackPlan {
  readonly tasks: readonly CaptureTask[];
  readonly take: (result: TaskResult, index: number) => void;
  /** Complete when every result was taken. */
  readonly packed: Packed;
}

const MEMBER_BYTES = 1 << 20;
const MEMBER_FILES = 512;

/** Cuts files, each with its links, into members. */
export function groupSmallFiles(units: readonly (readonly CaptureItem[])[]): CaptureItem[][] {
  const groups: CaptureItem[][] = [];
  let group: CaptureItem[] = [];
  let bytes = 0;
  for (const unit of units) {
    group.push(...unit);
    bytes += bytesOf(unit[0]!);
    if (bytes < MEMBER_BYTES && group.length < MEMBER_FILES) continue;
    groups.push(group);
    group = [];
    bytes = 0;
  }
  if (group.length > 0) groups.push(group);
  return groups;
}

export function planSmallFiles(
  { root, codec, writer, onBytes }: PackTarget,
  units: readonly (readonly CaptureItem[])[],
): PackPlan {
  const captured = new Map<string, CapturedItem>();
  const missed: MissedItem[] = [];
  const groups = groupSmallFiles(units);
  return {
    tasks: groups.map((items) => {
      return { kind: "pack", codec, root, items, sizeHint: totalBytesOf(items) };
    }),
    take(result) {
      missed.push(...result.missed);
      if (result.member === undefined) return;
      const start = writer.rawLength;
      const { raw, stored } = result.member;
      writer.append(stored, raw, result.captured.length);
      writer.enter(result.captured.map((item) => locate(item, start)));
      for (const item of result.captured) captured.set(item.entry.path, item);
      onBytes(raw.length);
    },
    packed: { captured, missed },
  };
}

/** The table entry of an item, located in the layer's raw stream. Completed in place: copies of 100,000 add up. */
function locate(item: CapturedItem, memberStart: number): TocEntry {
  const entry: { -readonly [key in keyof TocEntry]: TocEntry[key] } = item.entry;
  if (item.at !== undefined) {
    entry.at = memberStart + item.at;
    entry.length = item.stored!;
  }
  return entry;
}
