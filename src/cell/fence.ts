// Fencing of agents (INV-4): once an agent is revived, its predecessor can no longer write through Lazarus. A mission's
// epoch is a number in a file that only increases, and every agent knows the epoch it was started with. On the hot path
// this is one small read, and only for callers with an epoch.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LazarusError } from "../platform/errors.ts";
import type { Config } from "./config.ts";

/** The directory of the pit's records about a mission's agent: outside the cell, so that a restore does not change it. */
export function agentDirectory(config: Config, mission: string): string {
  return join(config.run_dir, "agents", mission);
}

/** The current epoch of the mission; 0 if no agent was ever started. */
export function readEpoch(config: Config, mission: string): number {
  try {
    const epoch = Number(readFileSync(join(agentDirectory(config, mission), "epoch"), "latin1"));
    return Number.isSafeInteger(epoch) && epoch > 0 ? epoch : 0;
  } catch {
    return 0;
  }
}

/** Throws if the caller's environment belongs to an earlier life of the mission. */
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
    `this process belongs to life ${mine} of ${mission}, but life ${current} has started; only the current life may write`,
    { hint: `lazarus why ${mission}`, details: { mission, epoch: mine, current } },
  );
}
