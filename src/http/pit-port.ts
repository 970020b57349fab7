// Implements PitPort on top of src/pit: views, actions, events and heartbeats.

import { findStoppedKeeper, isKeeperAlive } from "../cell/life.ts";
import type { MissionId } from "../cell/mission-id.ts";
import { scanCells } from "../cell/scan.ts";
import { pauseMission, reviveMission } from "../pit/actions.ts";
import type { PitContext } from "../pit/context.ts";
import { capture } from "../pit/death/handle-exit.ts";
import { stateOf } from "../pit/describe.ts";
import { LIVE_POINT, type LiveCheckpoints } from "../pit/live/live-points.ts";
import { agentOf, listAgentMissions, readRecord } from "../pit/record/store.ts";
import { restoreMission } from "../pit/restore.ts";
import { restMission, type StopResult, stopMission } from "../pit/stop.ts";
import { oldestUnhandledSeconds } from "../pit/unhandled.ts";
import { eachMission, type MissionView, viewMission } from "../pit/view.ts";
import { epochSeconds } from "../platform/clock.ts";
import { LazarusError } from "../platform/errors.ts";
import { listCheckpoints } from "../registry/checkpoints.ts";
import type { Registry } from "../registry/registry.ts";
import { type CheckpointResult, reportCheckpoint } from "../snapshot/operations/checkpoint.ts";
import { countChanges } from "../snapshot/restore/plan.ts";
import { callerKey } from "./caller.ts";
import type { ActionRequest, PitPort } from "./port.ts";
import { recordHeartbeat } from "./record-heartbeat.ts";
import { withRuns } from "./with-runs.ts";

/** Missions to read before yielding to other work, such as heartbeats and watching agents. */
const BATCH = 8;

/** `live`: what the pit knows about changes; absent without a running pit. */
export function createPitPort(pitContext: PitContext, live?: LiveCheckpoints): PitPort {
  const { machine, config } = pitContext;
  const registry = (): Registry => {
    const open = pitContext.registry();
    if (open !== undefined) return open;
    throw new LazarusError("REGISTRY_DAMAGED", "the registry cannot be opened", {
      hint: "lazarus registry rebuild",
    });
  };
  return {
    async missions() {
      const views: MissionView[] = [];
      for (const view of eachMission(pitContext)) {
        views.push({ ...view, record: null });
        if (views.length % BATCH === 0) await machine.clock.sleep(0);
      }
      return views;
    },
    async mission(mission) {
      const view = viewMission(pitContext, mission);
      if (view !== undefined) return view;
      throw new LazarusError("MISSION_UNKNOWN", `mission ${mission} has no cell and has never had an agent`, {
        hint: `lazarus init ${mission}`,
      });
    },
    async counts() {
      const { total_cells: _, ...cells } = scanCells(config, epochSeconds(machine.clock)).summary;
      const agents: Record<string, number> = {};
      for (const [n, mission] of listAgentMissions(config).entries()) {
        if (n % BATCH === BATCH - 1) await machine.clock.sleep(0);
        const state = agentState(pitContext, mission);
        agents[state] = (agents[state] ?? 0) + 1;
      }
      return { cells, agents };
    },
    oldestUnhandledSeconds: () => oldestUnhandledSeconds(pitContext),
    heartbeat: async (mission, request) => recordHeartbeat(machine, config, mission, request),
    checkpoints: async (mission) => listCheckpoints(registry(), { mission }),
    events: (page) => registry().events(page),
    async act(mission, action, request) {
      const { dry_run: dryRun = false, without_checkpoint: withoutCheckpoint = false } = request;
      switch (action) {
        case "stop":
          return describeStop(await stopMission(pitContext, mission));
        case "rest":
          return describeStop(await restMission(pitContext, mission));
        case "pause":
          return { ...(await pauseMission(pitContext, mission)) };
        case "revive": {
          const result = await reviveMission(pitContext, mission, { dryRun, withoutCheckpoint });
          if (result.outcome === "started")
            return {
              outcome: "started",
              epoch: result.started.epoch,
              pid: result.started.life?.agent.pid ?? null,
            };
          if (result.outcome === "would-start") return { outcome: "would-start", decision: result.decision };
          return { ...result };
        }
        case "restore": {
          const { target, safety, changes, flaws } = await restoreMission(pitContext, mission, request);
          return {
            checkpoint: target.id,
            safety_checkpoint: safety?.id ?? null,
            counts: countChanges(changes),
            flaws: flaws.length,
          };
        }
        case "checkpoint": {
          const result = await takeCheckpoint(pitContext, live, mission, request);
          const { ref, outcome, flaws } = result;
          return { checkpoint: ref.id, outcome, flaws: flaws.length, ...reportCheckpoint(result) };
        }
      }
    },
    withRuns: (mission, work) => withRuns(pitContext, mission, work),
    subscribe(listener) {
      pitContext.events.on("event", listener);
      return () => pitContext.events.off("event", listener);
    },
  };
}

/** Uses the dirty set, if the pit has one. */
async function takeCheckpoint(
  pitContext: PitContext,
  live: LiveCheckpoints | undefined,
  mission: MissionId,
  request: ActionRequest,
): Promise<CheckpointResult> {
  const { reason = "manual", message = null, agent, only_watched: onlyWatched, caller } = request;
  if (caller !== undefined && caller !== callerKey(pitContext.effective, pitContext.environment))
    throw new LazarusError("PIT_DIFFERS", "the pit has another version, configuration or home directory", {
      hint: "restart the pit; agents keep running",
    });
  const options = {
    reason,
    message,
    agent: agent === undefined ? agentOf(pitContext.config, mission) : agent,
    ...(request.live && LIVE_POINT),
  };
  if (onlyWatched && !live?.isWatched(mission))
    throw new LazarusError("CELL_NOT_WATCHED", `the pit does not watch the cell of ${mission}`, {
      hint: `lazarus checkpoint ${mission}, which walks it`,
    });
  return await (live?.checkpoint(mission, options) ?? capture(pitContext, mission, options));
}

function describeStop({ wasRunning, checkpoint, checkpointBefore, checkpointError, killed }: StopResult) {
  return {
    was_running: wasRunning,
    checkpoint,
    checkpoint_before: checkpointBefore,
    checkpoint_error: checkpointError,
    killed,
  };
}

function agentState({ machine, config }: PitContext, mission: string): string {
  try {
    const { processes } = machine;
    const alive =
      isKeeperAlive(processes, config, mission) &&
      findStoppedKeeper(processes, config, mission) === undefined;
    return stateOf(readRecord(config, mission), alive);
  } catch {
    return "unreadable";
  }
}
