// What a user, a script or the API can do with a mission's agent. The command line and HTTP call the same functions; each
// takes the mission's lock, writes the record durably, acts, records the event and wakes the pit.
import { existsSync } from "node:fs";
import { isKnownMission, unknownMission } from "../cell/known-missions.ts";
import { cellPaths } from "../cell/layout.ts";
import { findStoppedKeeper, isKeeperAlive, type Life, readLife } from "../cell/life.ts";
import type { MissionId } from "../cell/mission-id.ts";
import { LazarusError } from "../platform/errors.ts";
import type { CheckpointResult } from "../snapshot/operations/checkpoint.ts";
import type { PitContext } from "./context.ts";
import { answerCalls, type CallAnswer } from "./conversation/record-calls.ts";
import { previewEnd } from "./death/collect-facts.ts";
import { capture, handleExit, planRevival } from "./death/handle-exit.ts";
import { latchDesiredState } from "./latch.ts";
import { findMembers, identifyLife } from "./processes/members.ts";
import { pauseTree } from "./processes/pause.ts";
import { sendSignal } from "./processes/process-table.ts";
import { unansweredCalls } from "./record/conversation.ts";
import {
  approveRevival,
  type Decision,
  endLife,
  type MissionRecord,
  setDesiredState,
} from "./record/record.ts";
import { agentOf, readRecord, writeRecord } from "./record/store.ts";
import { bringBackHint } from "./start/find-obstacle.ts";
import { reviveAgent } from "./start/revive.ts";
import type { Started } from "./start/start-agent.ts";
import { noAgent } from "./stop.ts";
import { wakePit } from "./supervise/wake-file.ts";

/** Stops every process of the agent with SIGSTOP until the user revives it. */
export async function pauseMission(context: PitContext, mission: MissionId): Promise<{ processes: number }> {
  const { machine, config } = context;
  // Before the lock is taken, which would create the directory of an unknown mission.
  requireRecord(context, mission);
  using _ = await context.lockMission(mission, `pause of ${mission}`);
  const record = requireRecord(context, mission);
  requireLife(context, mission);
  const { unrecorded } = await latchDesiredState(context, record, "paused");
  const processes = await pauseTree(machine.clock, identifyLife(context, record));
  if (unrecorded !== undefined)
    throw new LazarusError(
      unrecorded.code,
      `${mission} is paused, but this could not be recorded: ${unrecorded.message}`,
      {
        hint: `free some space, then: lazarus pause ${mission}`,
        cause: unrecorded,
      },
    );
  context.recordEvent({ kind: "stop", mission, data: { wish: "paused", processes } });
  wakePit(machine, config, mission);
  return { processes };
}

/** What a revival did. */
export type ReviveResult =
  | { readonly outcome: "continued"; readonly processes: number }
  | { readonly outcome: "running" }
  | { readonly outcome: "would-start"; readonly decision: Decision; readonly record: MissionRecord }
  | { readonly outcome: "started"; readonly started: Started; readonly stepBackTo: string | null };

export interface ReviveOptions {
  readonly dryRun?: boolean;
  /** Revive even if the checkpoint of the last life fails. */
  readonly withoutCheckpoint?: boolean;
  /** Outcomes of tool calls that were cut off. */
  readonly calls?: readonly CallAnswer[];
}

/** Revives for the user: answers an `ask`, clears a latch or a tombstone, skips the backoff, continues a paused agent. */
export async function reviveMission(
  context: PitContext,
  mission: MissionId,
  options: ReviveOptions = {},
): Promise<ReviveResult> {
  const { machine, config } = context;
  requireRecord(context, mission);
  using lock = await context.lockMissionAfterStop(mission, `revival of ${mission}`);
  const record = requireRecord(context, mission);
  const isStuck = findStoppedKeeper(machine.processes, config, mission) !== undefined;
  if (isKeeperAlive(machine.processes, config, mission) && !isStuck) {
    if (record.wish === "paused" && !options.dryRun) return continueAgent(context, mission, record);
    // A stop that was interrupted before its agent ended.
    if (record.wish !== "running" && !options.dryRun)
      writeRecord(machine, config, setDesiredState(record, "running", machine.clock.nowMs()));
    return { outcome: "running" };
  }
  if (options.dryRun) return previewRevival(context, record);
  const exit = await handleExit(context, record, { withoutCheckpoint: options.withoutCheckpoint === true });
  if (exit.state === "checkpoint-failed") throw exit.error;
  const ended = exit.record ?? record;
  if (!existsSync(cellPaths(config, mission).root)) {
    throw new LazarusError("MISSION_UNKNOWN", `the cell of ${mission} is gone`, {
      hint: bringBackHint(config, mission),
    });
  }
  if (ended.command.length === 0) {
    throw new LazarusError("AGENT_UNKNOWN", `no start command on record for ${mission}`, {
      hint: `lazarus run ${mission} -- COMMAND`,
    });
  }
  const answered = answerCalls(ended, options.calls ?? []);
  refuseUnanswered(answered);
  const approved = approveRevival(answered, machine.clock.nowMs());
  writeRecord(machine, config, approved);
  const started = await reviveAgent(context, mission, approved, {
    how: "revival",
    stepBackTo: null,
    reason: "revived by you",
    heldLock: lock,
  });
  wakePit(machine, config, mission);
  return { outcome: "started", started, stepBackTo: null };
}

/** The user, not the model, decides about a call that matches the user's effect rules. */
function refuseUnanswered({ mission, end }: MissionRecord): void {
  const calls = unansweredCalls(end?.open_calls);
  if (calls.length === 0) return;
  const names = calls.map(({ tool, summary }) => `${tool} ${summary}`);
  throw new LazarusError(
    "CALL_UNANSWERED",
    `${mission} was cut off during ${names.join("; ")}, and only you can find out whether it happened`,
    {
      hint: `lazarus revive ${mission} --call done, or: --call not-done, --call unknown`,
      details: { calls },
    },
  );
}

function continueAgent(context: PitContext, mission: MissionId, record: MissionRecord): ReviveResult {
  const { machine, config } = context;
  writeRecord(machine, config, setDesiredState(record, "running", machine.clock.nowMs()));
  const members = findMembers(identifyLife(context, record));
  for (const { pid } of members) sendSignal(pid, "SIGCONT");
  context.recordEvent({ kind: "revival", mission, data: { how: "continued", processes: members.length } });
  wakePit(machine, config, mission);
  return { outcome: "continued", processes: members.length };
}

async function previewRevival(context: PitContext, record: MissionRecord): Promise<ReviveResult> {
  const end = await previewEnd(context, record);
  const { healthyMs } = context.settings(record).limits;
  const ended = end === undefined ? record : endLife(record, end, healthyMs);
  return { outcome: "would-start", decision: planRevival(context, ended), record: ended };
}

/** Takes a checkpoint for the user. */
export async function checkpointMission(
  context: PitContext,
  mission: MissionId,
  message: string | null = null,
): Promise<CheckpointResult> {
  const agent = agentOf(context.config, mission);
  return capture(context, mission, { reason: "manual", message, agent });
}

export function requireRecord(context: PitContext, mission: MissionId): MissionRecord {
  const record = readRecord(context.config, mission);
  if (record !== undefined && record.life !== null) return record;
  throw noAgent(context.config, mission);
}

export function requireLife(context: PitContext, mission: MissionId): Life {
  const life = readLife(context.config, mission);
  if (life !== undefined && isKeeperAlive(context.machine.processes, context.config, mission)) return life;
  if (!isKnownMission(context.config, mission)) throw unknownMission(context.config, mission);
  throw new LazarusError("AGENT_NOT_RUNNING", `no agent of ${mission} is running`, {
    hint: `lazarus status ${mission}`,
  });
}
