// A record without a start command: of a mission that has not had an agent yet, or whose record was lost. Pure.
import { createRecord, type MissionRecord } from "./record.ts";

export function createBareRecord(mission: string, agent: string, nowMs: number): MissionRecord {
  const spec = { mission, agent, command: [], cwd: null, env: {}, substitute: null, stall_seconds: null };
  return createRecord(undefined, { ...spec, revive: null }, nowMs);
}
