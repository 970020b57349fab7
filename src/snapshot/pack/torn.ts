// Did a file move while it was being read? What its stat before and after says, and what it cannot say.
import { systemClock } from "../../platform/clock.ts";
import { ctimeMs, type FileStat } from "../../platform/file-stat.ts";

export function movedMeanwhile(before: FileStat, after: FileStat): string | undefined {
  if (before.size !== after.size)
    return `its size went from ${before.size} to ${after.size} while being read`;
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
 * A file system keeps time in ticks of up to 10 ms: two writes within one leave the same stat. What no stat shows is a
 * single write that the kernel holds up in its middle for longer; the next checkpoint looks at such a file again.
 */
const TICK_MS = 12;

/** Changed so recently that another change could have left no trace in its stat. */
export function isHot(stat: FileStat): boolean {
  const ageMs = systemClock.nowMs() - ctimeMs(stat);
  return ageMs > -TICK_MS && ageMs < TICK_MS;
}

export function signatureOf(stat: FileStat): string {
  return `${stat.ino} ${stat.size} ${stat.mtimeSec}.${stat.mtimeNs} ${stat.ctimeSec}.${stat.ctimeNs}`;
}
