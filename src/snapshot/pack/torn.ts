// Detects files that change while they are read, by their stat before and after.
import { systemClock } from "../../platform/clock.ts";
import { createStat, ctimeMs, type FileStat, statOpen } from "../../platform/file-stat.ts";

export function changedWhileReading(before: FileStat, after: FileStat): string | undefined {
  if (before.size !== after.size)
    return `its size changed from ${before.size} to ${after.size} while it was read`;
  if (
    before.mtimeNs !== after.mtimeNs ||
    before.ctimeNs !== after.ctimeNs ||
    before.mtimeSec !== after.mtimeSec ||
    before.ctimeSec !== after.ctimeSec
  )
    return "it was written while being read";
  return undefined;
}

/**
 * File systems keep time in ticks of up to 10 ms: two writes within one tick leave the same stat. A single write that the
 * kernel suspends for longer shows in no stat; the next checkpoint hashes such a file again.
 */
export const TICK_MS = 12;

/** Changed so recently that another change might not show in its stat. */
export function isHot(stat: FileStat): boolean {
  const ageMs = systemClock.nowMs() - ctimeMs(stat);
  return ageMs > -TICK_MS && ageMs < TICK_MS;
}

const QUIET_ATTEMPTS = 3;
const QUIET_MS = 13;

/** Waits briefly until another write would show in the file's timestamps. */
export function statWhenQuiet(fd: number): FileStat {
  const stat = statOpen(fd, createStat());
  for (let attempt = 0; attempt < QUIET_ATTEMPTS && isHot(stat); attempt += 1) {
    Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, QUIET_MS);
    statOpen(fd, stat);
  }
  return stat;
}

export function signatureOf(stat: FileStat): string {
  return `${stat.ino} ${stat.size} ${stat.mtimeSec}.${stat.mtimeNs} ${stat.ctimeSec}.${stat.ctimeNs}`;
}
