// What the pit does on its rounds among live agents: who has fallen silent, whose checkpoint is due, whose log is too
// long, and which missions nobody watches may need a look. Each costs little: 500 agents are seen in a few milliseconds.
import { statSync } from "node:fs";
import { join } from "node:path";
import { pathsBelow } from "../../cell/layout.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import type { PitContext } from "../context.ts";
import { agentPlaces, readRecord } from "../record/store.ts";
import type { PitSettings } from "../settings.ts";
import { agentLog } from "../start/start-agent.ts";
import { lastActivityMs, lastProgressMs } from "../view.ts";
import { newestChangeMs } from "./newest-change.ts";
import { rotateLog } from "./rotate-log.ts";
import { judgeStall, lookEveryMs, observe, type StallLimits, startClocks } from "./stall.ts";
import type { Watched, WatchList } from "./watch-list.ts";

export interface Rounds {
  findStalled(monotonicMs: number): { mission: MissionId; reason: string }[];
  dueCheckpoints(monotonicMs: number): { mission: MissionId; agent: string }[];
  boundLogs(monotonicMs: number): void;
  /** What is known of a mission may have changed. */
  forget(mission: MissionId): void;
  /** False for a mission whose record has not changed since it was last seen to need nothing. */
  mayNeed(mission: MissionId): boolean;
}

/** Settings and record of a mission, read again at most so often. */
const MEMORY_MS = 20_000;
const LOGS_MS = 1000;

interface Known {
  readonly readMs: number;
  readonly agent: string;
  readonly wanted: boolean;
  readonly settings: PitSettings;
  readonly stall: StallLimits;
}

export function createRounds(context: PitContext, watched: WatchList): Rounds {
  const { config } = context;
  const memory = new Map<MissionId, Known>();
  const stamps = new Map<MissionId, number>();
  let logsMs = 0;

  const know = (mission: MissionId, monotonicMs: number): Known | undefined => {
    const known = memory.get(mission);
    if (known !== undefined && monotonicMs - known.readMs < MEMORY_MS) return known;
    try {
      const record = readRecord(config, mission);
      if (record === undefined) return undefined;
      const settings = context.settings(mission, record.agent);
      const fresh: Known = {
        readMs: monotonicMs,
        agent: record.agent,
        wanted: record.wish === "running",
        settings,
        stall: {
          stallSeconds: record.stall_seconds ?? settings.stallSeconds,
          progressSeconds: settings.progressSeconds,
        },
      };
      memory.set(mission, fresh);
      return fresh;
    } catch {
      // A broken record or config is said when the mission is attended to.
      return undefined;
    }
  };

  const stalled = (one: Watched, limits: StallLimits, monotonicMs: number): string | undefined => {
    const root = join(config.missions_root, one.mission);
    const signs = {
      activity: lastActivityMs(config, root),
      progress: limits.progressSeconds === null ? 0 : lastProgressMs(root),
    };
    one.clocks =
      one.clocks === undefined ? startClocks(signs, monotonicMs) : observe(one.clocks, signs, monotonicMs);
    const reason = judgeStall(one.clocks, limits, monotonicMs);
    if (reason === undefined) return undefined;
    // The cheap signs are silent: only now the whole worktree is asked.
    const silentSinceMs = context.machine.clock.nowMs() - (monotonicMs - one.clocks.activeMs);
    if (newestChangeMs(pathsBelow(config, root).worktree, silentSinceMs) <= silentSinceMs) return reason;
    one.clocks = { ...one.clocks, activeMs: monotonicMs };
    return judgeStall(one.clocks, limits, monotonicMs);
  };

  return {
    findStalled(monotonicMs) {
      const found: { mission: MissionId; reason: string }[] = [];
      for (const one of watched.all()) {
        const known = know(one.mission, monotonicMs);
        const everyMs = known === undefined ? undefined : lookEveryMs(known.stall);
        if (everyMs === undefined || monotonicMs - one.lookedMs < everyMs) continue;
        one.lookedMs = monotonicMs;
        if (!known!.wanted) {
          one.clocks = undefined;
          continue;
        }
        const reason = stalled(one, known!.stall, monotonicMs);
        if (reason === undefined) continue;
        one.clocks = undefined;
        found.push({ mission: one.mission, reason });
      }
      return found;
    },
    dueCheckpoints(monotonicMs) {
      const found: { mission: MissionId; agent: string }[] = [];
      for (const one of watched.all()) {
        const known = know(one.mission, monotonicMs);
        const every = known?.settings.checkpointEverySeconds ?? null;
        if (every === null || monotonicMs - one.checkpointedMs < every * 1000) continue;
        one.checkpointedMs = monotonicMs;
        found.push({ mission: one.mission, agent: known!.agent });
      }
      return found;
    },
    boundLogs(monotonicMs) {
      if (monotonicMs - logsMs < LOGS_MS) return;
      logsMs = monotonicMs;
      for (const { mission, life } of watched.all()) {
        const known = life.detached ? know(mission, monotonicMs) : undefined;
        if (known === undefined) continue;
        try {
          rotateLog(
            agentLog(join(config.missions_root, mission)),
            known.settings.logLimitBytes,
            known.settings.logCount,
          );
        } catch {
          // A full disk, or a cell that is gone: the keeper tries, too.
        }
      }
    },
    forget: (mission) => {
      memory.delete(mission);
    },
    mayNeed(mission) {
      const stamp = statSync(agentPlaces(config, mission).record, { throwIfNoEntry: false })?.mtimeMs ?? 0;
      if (stamps.get(mission) === stamp) return false;
      stamps.set(mission, stamp);
      return true;
    },
  };
}
