// Fencing of agents (INV-4): once an agent is revived, its predecessor can no longer write through Lazarus. A mission's
// epoch is a number in a file that only increases, and every agent knows the epoch it was started with. On the hot path
// this is one small read, and only for callers with an epoch.
//
// A heartbeat is fenced without a lock. Its writer: creates the temporary file, checks the epoch, renames. A new life:
// raises the epoch, removes the temporary files of pending heartbeats, starts the agent. A check that passes came before
// the epoch was raised, so the temporary file existed before the removal: either it is removed and the rename fails, or
// the rename came first, before the new agent was started.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { LazarusError, quietly } from "../platform/errors.ts";
import type { Config } from "./config.ts";

/** The directory of the pit's records about a mission's agent: outside the cell, so that a restore does not change it. */
export function agentDirectory(config: Config, mission: string): string {
  return join(config.run_dir, "agents", mission);
}

/** The current epoch of the mission; 0 if no agent was ever started. */
export function readEpoch(config: Config, mission: string): number {
  const epoch = Number(quietly(() => readFileSync(join(agentDirectory(config, mission), "epoch"), "latin1")));
  return Number.isSafeInteger(epoch) && epoch > 0 ? epoch : 0;
}

/** The life that the caller's environment belongs to; undefined for a caller that no pit started, or of another mission. */
export function epochOf(
  env: Readonly<Record<string, string | undefined>>,
  mission: string | undefined,
): number | undefined {
  const epoch = Number(env.LAZARUS_EPOCH);
  return epoch > 0 && mission !== undefined && env.LAZARUS_MISSION === mission ? epoch : undefined;
}

/** Throws if the caller's environment belongs to an earlier life of the mission. */
export function refuseFenced(
  config: () => Config,
  env: Readonly<Record<string, string | undefined>>,
  mission: string | undefined = env.LAZARUS_MISSION,
): void {
  const epoch = epochOf(env, mission);
  if (epoch !== undefined) refuseEarlierLife(config(), mission!, epoch);
}

/** Throws if `epoch` is an earlier life of the mission. A caller without an epoch is not fenced. */
export function refuseEarlierLife(config: Config, mission: string, epoch: number | undefined): void {
  if (epoch === undefined) return;
  const current = readEpoch(config, mission);
  if (epoch >= current) return;
  throw new LazarusError(
    "EPOCH_FENCED",
    `the caller belongs to life ${epoch} of ${mission}, but life ${current} has started; only the current life may write`,
    { hint: `lazarus why ${mission}`, details: { mission, epoch, current } },
  );
}
