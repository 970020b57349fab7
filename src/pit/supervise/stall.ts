// When an agent counts as stalled: no activity (output, writes, CPU time, its own heartbeats) or no progress (flows, runs)
// for longer than its limit. Pure. The signs are counters, never times of files, which an agent can set. Measured on the
// monotonic clock, which does not advance while the host sleeps and does not jump when the time is set.
import type { Usage } from "../processes/usage.ts";

export interface Signs {
  /** Output and heartbeats; only compared for equality. */
  readonly activity: string;
  /** Undefined where the kernel does not report it. */
  readonly usage: Usage | undefined;
  /** Only compared for equality. */
  readonly progress: string;
}

export interface Clocks {
  readonly signs: Signs;
  /** CPU time when the agent was last active. */
  readonly cpuMs: number;
  /** Monotonic: when each sign was last seen to change. */
  readonly activeMs: number;
  readonly progressedMs: number;
}

export interface StallLimits {
  readonly stallSeconds: number | null;
  readonly progressSeconds: number | null;
}

export function startClocks(signs: Signs, monotonicMs: number): Clocks {
  return { signs, cpuMs: signs.usage?.cpuMs ?? 0, activeMs: monotonicMs, progressedMs: monotonicMs };
}

/** Share of the limit, in CPU time: a program that only waits, with a timer or two, uses less. */
const BUSY_SHARE = 0.01;

export function observe(clocks: Clocks, signs: Signs, limits: StallLimits, monotonicMs: number): Clocks {
  const before = clocks.signs;
  const progressed = signs.progress !== before.progress;
  const cpuMs = signs.usage?.cpuMs ?? 0;
  // Sums shrink when a process ends and no parent inherits its counters.
  const cpuBaseMs = Math.min(clocks.cpuMs, cpuMs);
  const active =
    progressed ||
    signs.activity !== before.activity ||
    (signs.usage?.writtenBytes ?? 0) > (before.usage?.writtenBytes ?? 0) ||
    cpuMs - cpuBaseMs >= BUSY_SHARE * (limits.stallSeconds ?? 0) * 1000;
  return {
    signs,
    cpuMs: active ? cpuMs : cpuBaseMs,
    activeMs: active ? monotonicMs : clocks.activeMs,
    progressedMs: progressed ? monotonicMs : clocks.progressedMs,
  };
}

/** After the host slept, every agent gets the whole limit again. */
export function restartClocks(clocks: Clocks, monotonicMs: number): Clocks {
  return { ...clocks, activeMs: monotonicMs, progressedMs: monotonicMs };
}

/** Why an agent counts as stalled; undefined while it does not. */
export function judgeStall(clocks: Clocks, limits: StallLimits, monotonicMs: number): string | undefined {
  const { stallSeconds, progressSeconds } = limits;
  const silent = (monotonicMs - clocks.activeMs) / 1000;
  if (stallSeconds !== null && silent > stallSeconds)
    return `no output, write, CPU use or heartbeat for ${Math.floor(silent)} s (limit ${stallSeconds} s)`;
  const idle = (monotonicMs - clocks.progressedMs) / 1000;
  if (progressSeconds !== null && idle > progressSeconds)
    return `no flow or run progress for ${Math.floor(idle)} s (limit ${progressSeconds} s)`;
  return undefined;
}

/** How often to check, so that a limit is not exceeded by much. */
export function stallCheckEveryMs({ stallSeconds, progressSeconds }: StallLimits): number | undefined {
  const limit = Math.min(
    stallSeconds ?? Number.POSITIVE_INFINITY,
    progressSeconds ?? Number.POSITIVE_INFINITY,
  );
  return Number.isFinite(limit) ? Math.min(5000, Math.max(250, limit * 250)) : undefined;
}

export interface Reading {
  readonly wallMs: number;
  readonly monotonicMs: number;
}

/** A difference between the two clocks that scheduling does not explain. */
const MIN_GAP_MS = 5000;

/** How long the host slept between two readings; 0 when it did not. A clock set forward looks the same. */
export function sleptMs(before: Reading, now: Reading): number {
  const ahead = wallAheadMs(before, now);
  return ahead > MIN_GAP_MS ? ahead : 0;
}

/** Whether the wall clock was set back between two readings, which delays everything that waits for a wall-clock time. */
export function wasSetBack(before: Reading, now: Reading): boolean {
  return wallAheadMs(before, now) < -MIN_GAP_MS;
}

function wallAheadMs(before: Reading, now: Reading): number {
  return now.wallMs - before.wallMs - (now.monotonicMs - before.monotonicMs);
}
