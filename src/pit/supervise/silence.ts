// Cells that only send heartbeats, of a gateway or a container for example, have no keeper that could report their end. The
// pit alerts once when such a cell goes silent and takes a checkpoint of it; which silences were reported is on disk, so
// that a restart of the pit repeats nothing.
import { join } from "node:path";
import { isMissionId, type MissionId } from "../../cell/mission-id.ts";
import { scanCells } from "../../cell/scan.ts";
import { epochSeconds } from "../../platform/clock.ts";
import { readJsonFile, writeJsonFile } from "../../platform/json-file.ts";
import type { PitContext } from "../context.ts";
import { formatDuration } from "../describe.ts";
import { createInactiveLookup } from "../inactive.ts";
import { readRecord } from "../record/store.ts";
import { grantedValues } from "../settings.ts";

/** The last heartbeat of each silent cell, in epoch seconds. */
export type Silences = ReadonlyMap<string, number>;

export interface SilencePlan {
  /** Silent since the last check. */
  readonly fresh: readonly string[];
  /** All silences that are known. */
  readonly known: Silences;
}

/** A silence that is older than `maxAgeSeconds` when the pit first sees it is remembered, but not reported. Pure. */
export function planSilence(
  silent: Silences,
  known: Silences,
  nowSeconds: number,
  maxAgeSeconds: number,
): SilencePlan {
  const fresh = [...silent].filter(
    ([mission, last]) => known.get(mission) !== last && nowSeconds - last <= maxAgeSeconds,
  );
  return { fresh: fresh.map(([mission]) => mission), known: silent };
}

/** Returns the missions that have gone silent, with a sentence about each. */
export function findNewSilences(context: PitContext): { mission: MissionId; reason: string }[] {
  const { machine, config } = context;
  const nowSeconds = epochSeconds(machine.clock);
  const silent = new Map<string, number>();
  const { cells } = scanCells(config, nowSeconds, createInactiveLookup(context));
  for (const { mission_id: mission, status, last_timestamp: last } of cells)
    if (status === "stale" && last !== null && isMissionId(mission) && !hasAgent(context, mission))
      silent.set(mission, last);
  const known = readKnown(context);
  const { max_age_seconds: maxAgeSeconds } = grantedValues(
    context.effective.document,
    context.effective.file,
  );
  const plan = planSilence(silent, known, nowSeconds, maxAgeSeconds);
  if (!isSame(plan.known, known))
    writeJsonFile(machine.disk, knownFile(context), Object.fromEntries(plan.known));
  return plan.fresh.map((mission) => {
    const age = formatDuration((nowSeconds - silent.get(mission)!) * 1000);
    return { mission: mission as MissionId, reason: `no heartbeat for ${age}` };
  });
}

/** The pit handles the end of an agent itself, and alerts where that fails. */
function hasAgent({ config }: PitContext, mission: MissionId): boolean {
  try {
    return readRecord(config, mission)?.life != null;
  } catch {
    return true;
  }
}

function knownFile({ config }: PitContext): string {
  return join(config.run_dir, "silent.json");
}

function readKnown(context: PitContext): Silences {
  const reading = readJsonFile(knownFile(context));
  if (!reading.ok) return new Map();
  return new Map(
    Object.entries(reading.value).filter((entry): entry is [string, number] => typeof entry[1] === "number"),
  );
}

function isSame(a: Silences, b: Silences): boolean {
  return a.size === b.size && [...a].every(([mission, last]) => b.get(mission) === last);
}
