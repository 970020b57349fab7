// Unhandled deaths, for /health and the metrics: lives that ended without a checkpoint and a decision, and overdue
// revivals. Read-only.
import { isKeeperAlive, readExitOf } from "../cell/life.ts";
import type { MissionId } from "../cell/mission-id.ts";
import type { ReadContext } from "./context.ts";
import { type MissionRecord, nextStep } from "./record/record.ts";
import { listAgentMissions, readRecord } from "./record/store.ts";

/** Since when a life has been over without a checkpoint and a decision, or a revival has been overdue; null if neither. */
export function unhandledSinceMs(
  record: MissionRecord,
  endedMs: number | undefined,
  nowMs: number,
): number | null {
  const { life, end, decision, wish } = record;
  switch (nextStep(record)) {
    case "none":
      return null;
    case "record-end":
      return endedMs ?? life?.started_ms ?? null;
    case "checkpoint":
    case "decide":
      return end?.at_ms ?? null;
    case "wait": {
      const dueMs = decision?.at_ms ?? null;
      return wish === "running" && dueMs !== null && dueMs < nowMs ? dueMs : null;
    }
  }
}

/** Missions to read before yielding to other work. */
const BATCH = 8;

/** The age of the oldest one in seconds; 0 when there is none. */
export async function oldestUnhandledSeconds(context: ReadContext): Promise<number> {
  const { clock } = context.machine;
  let oldestMs = Number.POSITIVE_INFINITY;
  for (const [n, mission] of listAgentMissions(context.config).entries()) {
    if (n % BATCH === BATCH - 1) await clock.sleep(0);
    oldestMs = Math.min(oldestMs, sinceMs(context, mission) ?? oldestMs);
  }
  return Math.max(0, (clock.nowMs() - oldestMs) / 1000);
}

function sinceMs({ machine, config }: ReadContext, mission: MissionId): number | null {
  try {
    const record = readRecord(config, mission);
    if (record?.life == null || nextStep(record) === "none") return null;
    if (isKeeperAlive(machine.processes, config, mission)) return null;
    const endedMs = readExitOf(config, mission, record.life.epoch)?.endedMs;
    return unhandledSinceMs(record, endedMs, machine.clock.nowMs());
  } catch {
    // A record that cannot be read is in status, with its reason.
    return null;
  }
}
