// Fencing of agents (INV-4): a revived agent's predecessor can write nothing more through Lazarus. The epoch of a
// mission lies in a file of one number that only grows; an agent carries the epoch it was started with. On the hot path:
// one small read, and only for callers that carry an epoch.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LazarusError } from "../platform/errors.ts";
import type { Config } from "./config.ts";

/** Where the pit keeps what it knows of a mission's agent: outside the cell, so that no restore touches it. */
export function agentDirectory(config: Config, mission: string): string {
  return join(config.run_dir, "agents", mission);
}

/** The mission's epoch; 0 when no agent was ever started. */
export function readEpoch(config: Config, mission: string): number {
  try {
    const epoch = Number(readFileSync(join(agentDirectory(config, mission), "epoch"), "latin1"));
    return Number.isSafeInteger(epoch) && epoch > 0 ? epoch : 0;
  } catch {
    return 0;
  }
}

/** Refuses a caller whose environment says that it belongs to an earlier life of the mission. */
export function refuseFenced(
  config: () => Config,
  env: Readonly<Record<string, string | undefined>>,
  mission: string | undefined = env.LAZARUS_MISSION,
): void {
  const mine = Number(env.LAZARUS_EPOCH);
  if (!(mine > 0) || mission === undefined || env.LAZARUS_MISSION !== mission) return;
  const current = readEpoch(config(), mission);
  if (mine >= current) return;
  throw new LazarusError(
    "EPOCH_FENCED",
    `this process belongs to life ${mine} of ${mission}, which is over: life ${current} has begun, and only it may write`,
    { hint: `lazarus why ${mission}`, details: { mission, epoch: mine, current } },
  );
}
