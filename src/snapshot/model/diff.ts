// The differences between two listings: two checkpoints, or a checkpoint and the current cell. Pure, apart from the
// injected content readers.
import { isUtf8 } from "node:buffer";
import type { Entry, Listing } from "./entry.ts";
import { comparePaths } from "./path-bytes.ts";
import { unifiedDiff } from "./text-diff.ts";

/** How a path differs. */
export type ChangeKind = "added" | "changed" | "removed" | "type" | "metadata";

/** One path that differs between two listings. */
export interface Change {
  readonly path: string;
  readonly kind: ChangeKind;
  readonly before?: Entry;
  readonly after?: Entry;
  /** What differs besides the content: "mode", "owner", "time", "xattrs", "links", "holes". */
  readonly aspects: readonly string[];
}

/** Compares two listings. Pure. */
export function compareListings(before: Listing, after: Listing): Change[] {
  const changes: Change[] = [];
  for (const [path, old] of before) {
    const now = after.get(path);
    if (now === undefined) changes.push({ path, kind: "removed", before: old, aspects: [] });
    else {
      const change = compareEntries(old, now);
      if (change !== undefined) changes.push(change);
    }
  }
  for (const [path, now] of after) {
    if (!before.has(path)) changes.push({ path, kind: "added", after: now, aspects: [] });
  }
  const linked = changedGroups(before, after, changes);
  return [...changes, ...linked].sort((a, b) => comparePaths(a.path, b.path));
}

/** A directory's time changes whenever an entry is added or removed: rarely worth showing. */
export function isOnlyDirectoryTime(change: Change): boolean {
  return (
    change.kind === "metadata" &&
    change.after?.type === "directory" &&
    change.aspects.every((aspect) => aspect === "time")
  );
}

function compareEntries(before: Entry, after: Entry): Change | undefined {
  const { path } = after;
  const aspects = differingAspects(before, after);
  if (before.type !== after.type) return { path, kind: "type", before, after, aspects };
  if (contentDiffers(before, after)) return { path, kind: "changed", before, after, aspects };
  return aspects.length === 0 ? undefined : { path, kind: "metadata", before, after, aspects };
}

function contentDiffers(a: Entry, b: Entry): boolean {
  if (a.target !== b.target || a.size !== b.size) return true;
  // The digest covers the stored bytes, so different holes also count as different content.
  return a.sha256 !== b.sha256;
}

function differingAspects(a: Entry, b: Entry): string[] {
  const aspects: string[] = [];
  if (a.mode !== b.mode) aspects.push("mode");
  if (a.uid !== b.uid || a.gid !== b.gid) aspects.push("owner");
  if (a.mtimeSec !== b.mtimeSec || a.mtimeNs !== b.mtimeNs) aspects.push("time");
  if (encodeXattrs(a.xattrs) !== encodeXattrs(b.xattrs)) aspects.push("xattrs");
  if (JSON.stringify(a.extents ?? null) !== JSON.stringify(b.extents ?? null)) aspects.push("holes");
  return aspects;
}

function encodeXattrs(xattrs: Entry["xattrs"]): string {
  return JSON.stringify([...(xattrs ?? [])].sort(([x], [y]) => (x < y ? -1 : 1)));
}

/** Paths that differ only in which others share their inode. Group names are not comparable across checkpoints. */
function changedGroups(before: Listing, after: Listing, known: readonly Change[]): Change[] {
  const seen = new Set(known.map(({ path }) => path));
  const partnersBefore = partnersOf(before);
  const partnersAfter = partnersOf(after);
  const changes: Change[] = [];
  for (const path of new Set([...partnersBefore.keys(), ...partnersAfter.keys()])) {
    const old = before.get(path);
    const now = after.get(path);
    if (old === undefined || now === undefined || seen.has(path)) continue;
    if (partnersBefore.get(path) === partnersAfter.get(path)) continue;
    changes.push({ path, kind: "metadata", before: old, after: now, aspects: ["links"] });
  }
  return changes;
}

function partnersOf(listing: Listing): Map<string, string> {
  const groups = new Map<string, string[]>();
  for (const { path, group } of listing.values()) {
    if (group === undefined) continue;
    const members = groups.get(group);
    if (members === undefined) groups.set(group, [path]);
    else members.push(path);
  }
  const partners = new Map<string, string>();
  for (const members of groups.values()) {
    if (members.length < 2) continue;
    const all = members.sort().join("\0");
    for (const path of members) partners.set(path, all);
  }
  return partners;
}

/** The bytes of a file on one side; undefined when they cannot be read. */
export type ReadContent = (entry: Entry) => Buffer | undefined;

export interface ContentDiff {
  /** A unified diff, or "" when `note` says why there is none. */
  readonly text: string;
  readonly note: string | null;
}

/** Larger files are not compared line by line. */
export const CONTENT_LIMIT_BYTES = 1 << 20;
const BINARY_PROBE_BYTES = 8000;

export function diffContent(change: Change, readBefore: ReadContent, readAfter: ReadContent): ContentDiff {
  const { before, after } = change;
  if (change.kind === "metadata") return { text: "", note: null };
  const sides: string[] = [];
  for (const [entry, read] of [
    [before, readBefore],
    [after, readAfter],
  ] as const) {
    const side = textOf(entry, read);
    if (typeof side !== "string") return { text: "", note: side.note };
    sides.push(side);
  }
  const [old = "", now = ""] = sides;
  return { text: unifiedDiff(old, now), note: null };
}

/** Text contains no NUL; other control characters only make a file binary if it is not UTF-8. */
function isBinary(bytes: Buffer): boolean {
  const head = bytes.subarray(0, BINARY_PROBE_BYTES);
  return (
    head.includes(0) || (!isUtf8(bytes) && /[\x01-\x08\x0e-\x1a\x1c-\x1f]/.test(head.toString("latin1")))
  );
}

/** The text of a symlink is its target; directories and FIFOs have none. */
function textOf(entry: Entry | undefined, read: ReadContent): string | { note: string } {
  if (entry === undefined || entry.type === "directory" || entry.type === "fifo") return "";
  if (entry.type === "symlink") return `${entry.target ?? ""}\n`;
  if (entry.size === 0) return "";
  if (entry.extents !== undefined) return { note: "a sparse file" };
  if (entry.size > CONTENT_LIMIT_BYTES) return { note: `larger than ${CONTENT_LIMIT_BYTES} bytes` };
  const bytes = read(entry);
  if (bytes === undefined) return { note: "it can no longer be read" };
  if (isBinary(bytes)) return { note: "a binary file" };
  return bytes.toString("utf8");
}
