// Handles a life that has ended: kill orphans, record the end, take a checkpoint, decide. Each step is durable before the
// next and happens once per life, so after a kill at any point the next caller continues there. Nothing is decided without
// the checkpoint: it is retried until it succeeds or the user waives it (INV-10). Starts nothing: reviving is
// start/revive.ts.
import { existsSync } from "node:fs";
import { readSession, writeSession } from "../../agents/session.ts";
import { cellPaths } from "../../cell/layout.ts";
import { isKeeperAlive } from "../../cell/life.ts";
import { type MissionId, parseMissionId } from "../../cell/mission-id.ts";
import type { MissionStatus } from "../../cell/mission-status.ts";
import { readOutsideWorktree } from "../../cell/worktree-record.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import type { CheckpointRef, Reason } from "../../snapshot/model/entry.ts";
import type { CheckpointOptions, CheckpointResult } from "../../snapshot/operations/checkpoint.ts";
import { noteStatus, type PitContext } from "../context.ts";
import { recordCalls } from "../conversation/record-calls.ts";
import { describeEnd, describeError } from "../describe.ts";
import { cgroupProcesses, removeCgroup } from "../processes/cgroup.ts";
import { identifyLife } from "../processes/members.ts";
import { refreshDecision } from "../record/pending.ts";
import {
  type Decision,
  dropDecision,
  endLife,
  firstDeathMs,
  type MissionRecord,
  nextStep,
  type RecordedDecision,
  type RecordedEnd,
  setCheckpoint,
  setDecision,
  wasExpected,
} from "../record/record.ts";
import { writeRecord } from "../record/store.ts";
import type { PitSettings } from "../settings.ts";
import { findRevivalObstacle } from "../start/find-obstacle.ts";
import { type AgentReport, classifyEnd, describeSkipped } from "./classify-end.ts";
import { collectFacts, type KeeperFiles, readKeeperFiles } from "./collect-facts.ts";
import { finishKeeper } from "./finish-keeper.ts";
import { killOrphans } from "./orphans.ts";
import { decideRevival, situationOf } from "./policy.ts";
import { recordTypedStop } from "./requested-end.ts";

export type ExitResult =
  /** There never was a life. */
  | { readonly state: "none"; readonly record: MissionRecord | undefined }
  | { readonly state: "alive"; readonly record: MissionRecord }
  | { readonly state: "handled"; readonly record: MissionRecord; readonly decision: RecordedDecision }
  /** Disk full or vault damaged, for example. Retry later: nothing is decided without the checkpoint. */
  | { readonly state: "checkpoint-failed"; readonly record: MissionRecord; readonly error: LazarusError };

export interface ExitOptions {
  /** When the host last woke from sleep. */
  readonly sleptUntilMs?: number | undefined;
  /** The user waives a checkpoint that fails. */
  readonly withoutCheckpoint?: boolean;
  /** Default: `capture`, which walks the cell. */
  readonly takeCheckpoint?: PitContext["takeCheckpoint"];
}

/** The caller holds the mission's lock and has read the record under it. */
export async function handleExit(
  context: PitContext,
  given: MissionRecord | undefined,
  options: ExitOptions = {},
): Promise<ExitResult> {
  if (given === undefined || given.life === null) return { state: "none", record: given };
  const { machine, config } = context;
  if (isKeeperAlive(machine.processes, config, given.mission) && !(await finishKeeper(context, given)))
    return { state: "alive", record: given };
  let record = given;
  if (nextStep(record) === "record-end") {
    record = await recordEnd(context, recordTypedStop(context, record), options.sleptUntilMs);
    crashPoint("pit.exit.recorded");
  }
  if (nextStep(record) === "checkpoint" || hasCellAgain(context, record)) {
    const result = await checkpointExit(context, record, options);
    if (result.error !== undefined)
      return { state: "checkpoint-failed", record: result.record, error: result.error };
    record = result.record;
    crashPoint("pit.exit.checkpointed");
  }
  if (nextStep(record) === "wait") {
    const { maxAgeMs } = context.settings(record).limits;
    const nowMs = machine.clock.nowMs();
    const refreshed = isBlocked(context, record, nowMs)
      ? dropDecision(record)
      : refreshDecision(record, nowMs, maxAgeMs);
    if (refreshed !== record) writeRecord(machine, config, refreshed);
    record = refreshed;
  }
  if (nextStep(record) === "decide") {
    record = decide(context, record);
    crashPoint("pit.exit.decided");
  }
  return { state: "handled", record, decision: record.decision! };
}

/** Due, but it cannot be carried out any more: decide again instead of failing at every attempt. */
function isBlocked(context: PitContext, record: MissionRecord, nowMs: number): boolean {
  const { action, at_ms: atMs } = record.decision!;
  const how = action === "substitute" ? "substitute" : "revival";
  return nowMs >= (atMs ?? nowMs) && findRevivalObstacle(context, record, how) !== undefined;
}

async function recordEnd(
  context: PitContext,
  record: MissionRecord,
  sleptUntilMs: number | undefined,
): Promise<MissionRecord> {
  const settings = context.settings(record);
  const files = readKeeperFiles(context, record);
  const orphans = await killOrphansOf(context, record, settings, files);
  const facts = await collectFacts(context, record, { ...files, settings, orphans, sleptUntilMs });
  const end = classifyEnd(facts);
  const ended = endLife(record, end, settings.limits.healthyMs);
  if (facts.report !== undefined) keepReport(context, ended, facts.report);
  writeRecord(context.machine, context.config, ended);
  // Before the checkpoint, which includes it.
  noteStatus(
    context,
    record.mission,
    statusAfter(ended, end),
    `life ${end.epoch} ended: ${describeEnd(end)}`,
  );
  recordEndEvent(context, record, end);
  for (const pattern of facts.search.newlySkipped) {
    const reason = describeSkipped(pattern);
    context.log(`${record.mission}: ${reason}`);
    context.recordEvent({ kind: "alert", mission: record.mission, data: { action: "trouble", reason } });
  }
  return ended;
}

/**
 * Before the record and the checkpoint: which session the agent had, and which calls were cut off. On a full disk the record
 * still has the calls, and a revival writes them to the history.
 */
function keepReport({ machine, config, log }: PitContext, record: MissionRecord, report: AgentReport): void {
  const { root } = cellPaths(config, parseMissionId(record.mission));
  try {
    const stored = readSession(root);
    if (report.session !== null && stored !== undefined && stored.session !== report.session)
      writeSession(machine, root, { ...stored, session: report.session });
    crashPoint("pit.exit.session");
    recordCalls(machine, root, record);
  } catch (error) {
    log(`${record.mission}: cannot record the conversation: ${describeError(error)}`);
  }
}

/** Returns how many there were. */
async function killOrphansOf(
  context: PitContext,
  record: MissionRecord,
  settings: PitSettings,
  { exit }: KeeperFiles,
): Promise<number> {
  const { mission } = record;
  const identity = identifyLife(context, record);
  // A keeper that wrote an exit has killed everything itself. Agents can write that file too, but not empty the group.
  const isEmpty = identity.cgroup === null || cgroupProcesses(identity.cgroup).length === 0;
  const { killed, unkillable } =
    exit !== undefined && isEmpty
      ? { killed: 0, unkillable: [] }
      : await killOrphans(context.machine.clock, identity, settings.leftoverGraceSeconds * 1000);
  if (identity.cgroup !== null) removeCgroup(identity.cgroup);
  if (unkillable.length === 0) return killed;
  throw new LazarusError(
    "AGENT_IMMORTAL",
    `cannot kill process ${unkillable.join(", ")} of ${mission}, so no new agent is started`,
    { hint: `ps -o pid,stat,wchan,args -p ${unkillable.join(",")}` },
  );
}

function statusAfter({ wish }: MissionRecord, end: RecordedEnd): MissionStatus {
  if (wish === "stopped" || wish === "resting") return wish;
  return end.kind === "departure" ? "finished" : "crashed";
}

function recordEndEvent(context: PitContext, record: MissionRecord, end: RecordedEnd): void {
  context.recordEvent({
    kind: wasExpected(record, end) ? "departure" : end.kind === "stall" ? "stall" : "death",
    mission: record.mission,
    data: {
      epoch: end.epoch,
      exit_code: end.exit_code,
      signal: end.signal,
      class: end.class ?? null,
      evidence: end.evidence.map(({ kind }) => kind),
    },
  });
}

/** Its cell was gone when it ended, and has been restored or mounted since. */
function hasCellAgain({ config }: PitContext, { mission, scene }: MissionRecord): boolean {
  return scene?.waived === "cell-gone" && existsSync(cellPaths(config, parseMissionId(mission)).root);
}

async function checkpointExit(
  context: PitContext,
  record: MissionRecord,
  {
    withoutCheckpoint = false,
    takeCheckpoint = (...checkpoint) => capture(context, ...checkpoint),
  }: ExitOptions,
): Promise<{ readonly record: MissionRecord; readonly error?: LazarusError }> {
  const { agent, life, scene: before } = record;
  const mission = parseMissionId(record.mission);
  const end = record.end!;
  const reason: Reason = end.kind === "departure" ? "departure" : wasExpected(record, end) ? "stop" : "crash";
  // A stop has taken one just before.
  const onlyIfChanged = reason === "stop" || before?.waived === "cell-gone";
  const scene = { epoch: life!.epoch, checkpoint: null, error: null };
  try {
    const { ref } = await takeCheckpoint(mission, { reason, message: null, agent, onlyIfChanged });
    const saved = setCheckpoint(record, { ...scene, checkpoint: ref.id });
    writeRecord(context.machine, context.config, saved);
    return { record: saved };
  } catch (thrown) {
    const { root } = cellPaths(context.config, mission);
    const error = notSaved(mission, asLazarusError(thrown, `the checkpoint of ${mission}`, root));
    const gone = !existsSync(root);
    const waived = gone ? "cell-gone" : withoutCheckpoint ? "by-user" : undefined;
    const failed = setCheckpoint(record, { ...scene, error: error.message, ...(waived && { waived }) });
    if (waived !== undefined) {
      writeRecord(context.machine, context.config, failed);
      return { record: failed };
    }
    // For why; a retry follows even if this cannot be written.
    if (before?.epoch !== scene.epoch || before.error !== error.message) tryToWrite(context, failed);
    return { record: failed, error };
  }
}

function tryToWrite({ machine, config }: PitContext, record: MissionRecord): void {
  try {
    writeRecord(machine, config, record);
  } catch {}
}

function notSaved(mission: string, failure: LazarusError): LazarusError {
  const without = `revive it without that checkpoint: lazarus revive ${mission} --without-checkpoint`;
  return new LazarusError(failure.code, failure.message, {
    hint: failure.hintOr(without),
    details: failure.details,
    cause: failure,
  });
}

/** Takes a checkpoint and records it. */
export async function capture(
  context: PitContext,
  mission: MissionId,
  options: CheckpointOptions,
): Promise<CheckpointResult> {
  const result = await context.takeCheckpoint(mission, options);
  if (result.finished !== undefined)
    context.log(`${mission}: finished an interrupted restore of ${result.finished.target} first`);
  return result;
}

function decide(context: PitContext, record: MissionRecord): MissionRecord {
  const { mission, life } = record;
  const decision = planRevival(context, record);
  const decided = setDecision(record, decision, context.machine.clock.nowMs());
  writeRecord(context.machine, context.config, decided);
  const data = { epoch: life!.epoch, action: decision.action, reason: decision.reason };
  if (decision.action === "tombstone") context.recordEvent({ kind: "tombstone", mission, data });
  if (decision.action === "tombstone" || decision.action === "ask")
    context.recordEvent({ kind: "alert", mission, data });
  return decided;
}

/** What the policy decides now about the life that ended. Only reads. */
export function planRevival(context: PitContext, record: MissionRecord): Decision {
  const { machine } = context;
  const settings = context.settings(record);
  const obstacle = findRevivalObstacle(
    context,
    record,
    settings.revive === "substitute" ? "substitute" : "revival",
  );
  return decideRevival(
    situationOf(record, {
      mode: settings.revive,
      limits: settings.limits,
      olderCheckpoints: obstacle === undefined ? listOlderCheckpoints(context, record) : [],
      obstacle: obstacle === undefined ? null : `${obstacle.reason}; ${obstacle.hint}`,
      nowMs: machine.clock.nowMs(),
      chance: machine.ids.bytes(1)[0]! / 255,
    }),
  );
}

/** Live points are seconds apart: each step back to one goes ten times as far as the last. */
const FIRST_LIVE_STEP_MS = 60_000;
const LIVE_STEP = 10;

/** Checkpoints from before the first death, newest first, without those that equal the one taken after this death. */
function listOlderCheckpoints(context: PitContext, record: MissionRecord): string[] {
  const firstMs = firstDeathMs(record);
  const sinceMs = readOutsideWorktree(context.config.missions_root, record.mission)?.since_ms ?? 0;
  const refs = listCheckpoints(context, record);
  const latest = refs.find(({ id }) => id === record.scene?.checkpoint);
  const seen = new Set<string>(latest === undefined ? [] : [latest.manifest]);
  const older: string[] = [];
  let nextLiveAgeMs = FIRST_LIVE_STEP_MS;
  for (const ref of refs.toReversed()) {
    if (firstMs !== undefined && ref.createdAtMs >= firstMs) continue;
    // The files of another directory.
    if (ref.createdAtMs < sinceMs) continue;
    if (seen.has(ref.manifest)) continue;
    if (ref.reason === "live" && firstMs !== undefined) {
      const ageMs = firstMs - ref.createdAtMs;
      if (ageMs < nextLiveAgeMs) continue;
      nextLiveAgeMs = ageMs * LIVE_STEP;
    }
    seen.add(ref.manifest);
    older.push(ref.id);
  }
  return older;
}

/** None when the vault is damaged and the user has revived without a checkpoint. */
function listCheckpoints(context: PitContext, { mission, scene }: MissionRecord): readonly CheckpointRef[] {
  try {
    return context.openMission(parseMissionId(mission)).vault.list();
  } catch (error) {
    if (scene?.waived === undefined) throw error;
    return [];
  }
}
