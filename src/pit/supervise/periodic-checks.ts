// Checks of running agents and their settings. Each is cheap: 500 agents take a few milliseconds.
import { statSync } from "node:fs";
import { join } from "node:path";
import { agentPaths } from "../../cell/agent-paths.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import type { PitContext } from "../context.ts";
import type { LiveLimits } from "../live/live-policy.ts";
import { agentLog } from "../paths.ts";
import { readUsage } from "../processes/usage.ts";
import { readRecord } from "../record/store.ts";
import { ownHeartbeatMs, progressTimes } from "../view.ts";
import { judgeStall, observe, type Signs, type StallLimits, startClocks } from "./stall.ts";
import type { WatchedAgent } from "./watch-list.ts";

/** What the pit needs to know about a running agent between ticks. */
export interface AgentSettings {
  readonly agent: string;
  /** False while the desired state is stopped, paused or resting. */
  readonly shouldRun: boolean;
  /** Null: no live points. */
  readonly live: LiveLimits | null;
  readonly checkpointEverySeconds: number | null;
  readonly leftoverGraceMs: number;
  readonly stall: StallLimits;
}

export interface SettingsCache {
  /** Undefined when record or config cannot be read; a check of the mission reports why. */
  get(mission: MissionId, monotonicMs: number): AgentSettings | undefined;
  forget(mission: MissionId): void;
}

const CACHE_MS = 20_000;

export function createSettingsCache(context: PitContext): SettingsCache {
  const cache = new Map<MissionId, { readonly readMs: number; readonly settings: AgentSettings }>();
  return {
    get(mission, monotonicMs) {
      const cached = cache.get(mission);
      if (cached !== undefined && monotonicMs - cached.readMs < CACHE_MS) return cached.settings;
      try {
        const settings = readSettings(context, mission);
        if (settings !== undefined) cache.set(mission, { readMs: monotonicMs, settings });
        return settings;
      } catch {
        return undefined;
      }
    },
    forget: (mission) => {
      cache.delete(mission);
    },
  };
}

function readSettings(context: PitContext, mission: MissionId): AgentSettings | undefined {
  const record = readRecord(context.config, mission);
  if (record === undefined) return undefined;
  const settings = context.settings(record);
  return {
    agent: record.agent,
    shouldRun: record.wish === "running",
    live: settings.live,
    checkpointEverySeconds: settings.checkpointEverySeconds,
    leftoverGraceMs: settings.leftoverGraceSeconds * 1000,
    stall: {
      stallSeconds: settings.stallSeconds,
      progressSeconds: settings.progressSeconds,
    },
  };
}

/** Returns why the agent counts as stalled; undefined while it does not. Updates the agent's clocks. */
export function checkStall(
  { config }: PitContext,
  agent: WatchedAgent,
  limits: StallLimits,
  monotonicMs: number,
): string | undefined {
  const root = join(config.missions_root, agent.mission);
  const log = statSync(agentLog(root), { throwIfNoEntry: false });
  const signs: Signs = {
    activity: `${log?.ino} ${log?.size} ${ownHeartbeatMs(config, root)}`,
    usage: readUsage(agent.life),
    progress: limits.progressSeconds === null ? "" : progressTimes(root).join(),
  };
  agent.clocks =
    agent.clocks === undefined
      ? startClocks(signs, monotonicMs)
      : observe(agent.clocks, signs, limits, monotonicMs);
  return judgeStall(agent.clocks, limits, monotonicMs);
}

/** Returns a function that reports whether a mission's record has changed since the previous call for it. */
export function createChangeDetector({ config }: PitContext): (mission: MissionId) => boolean {
  const modifiedMs = new Map<MissionId, number>();
  return (mission) => {
    const nowMs = statSync(agentPaths(config, mission).record, { throwIfNoEntry: false })?.mtimeMs ?? 0;
    if (modifiedMs.get(mission) === nowMs) return false;
    modifiedMs.set(mission, nowMs);
    return true;
  };
}
