// What to type when a disk is nearly full. Pure.
import { formatBytes } from "./format.ts";

/** How much a prune can remove from a mission's vault. */
export interface Removable {
  readonly mission: string;
  readonly bytes: number;
}

const ENOUGH_BYTES = 1 << 30;
const ENOUGH_SHARE = 0.05;

export function isNearlyFull(freeBytes: number, diskBytes: number): boolean {
  return freeBytes < ENOUGH_BYTES && freeBytes < diskBytes * ENOUGH_SHARE;
}

/** Names the vault from which most can be removed, or says that no prune helps. */
export function adviseOnSpace(removable: readonly Removable[]): string {
  const most = [...removable].sort((a, b) => b.bytes - a.bytes)[0];
  if (most === undefined || most.bytes === 0)
    return "no prune can free more: only the newest and protected checkpoints are left; unpin some, delete other files, or move vault_root";
  const { mission, bytes } = most;
  return `to free up to ${formatBytes(bytes)} more: lazarus prune ${mission} --max-bytes 1, which leaves only the newest and protected checkpoints (--dry-run lists them)`;
}
