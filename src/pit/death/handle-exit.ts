// What is done about a life that is over, in one visible order: end what survived → record the end → keep the scene →
// decide. Each step is durable before the next and done once per life, so whoever is killed in between, the next to look
// goes on from there. Reviving is another act (revive.ts); nothing here starts anything.
import { cellPaths } from "../../cell/layout.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { asLazarusError, ERROR_KINDS, LazarusError } from "../../platform/errors.ts";
import type { Reason } from "../../snapshot/model/entry.ts";
import { type CheckpointResult, takeCheckpoint } from "../../snapshot/operations/checkpoint.ts";
import type { PitContext } from "../context.ts";
import {
  endLife,
  enterDecision,
  keepScene,
  type MissionRecord,
  nextStep,
  type RecordedEnd,
  refreshDecision,
  situationOf,
  troubleStartMs,
} from "../record/record.ts";
import { readRecord, writeRecord } from "../record/store.ts";
import type { PitSettings } from "../settings.ts";
import { lifeGoesOn, readLife } from "../start/life.ts";
import { exitOf, findObstacle } from "../start/start-agent.ts";
import { judgeEnd } from "./classify-end.ts";
import { gatherEndFacts, lifeOf } from "./collect-facts.ts";
import { endSurvivors } from "./orphans.ts";
import { type Decision, decideRevival } from "./policy.ts";

export interface SettleOptions {
  readonly sleptUntilMs?: number | undefined;
}

export type Settled =
  | { readonly state: "none" | "alive" }
  | { readonly state: "settled"; readonly record: MissionRecord }
  /** The scene could not be kept yet (disk full, vault busy): nothing is decided before it is. */
  | { readonly state: "unkept"; readonly record: MissionRecord; readonly error: LazarusError };

/** Only under the mission's lock. */
export async function settleLife(
  context: PitContext,
  mission: MissionId,
  options: SettleOptions = {},
): Promise<Settled> {
  let record = readRecord(context.config, mission);
  if (record === undefined || record.life === null) return { state: "none" };
  if (lifeGoesOn(context.machine.processes, context.config, mission)) return { state: "alive" };
  if (nextStep(record) === "record-end") {
    record = await recordEnd(context, mission, record, options);
    crashPoint("pit.settle.ended");
  }
  if (nextStep(record) === "keep-scene") {
    try {
      record = await takeScene(context, mission, record);
    } catch (error) {
      const failure = asLazarusError(error, `the checkpoint of ${mission}`);
      if (ERROR_KINDS[failure.kind].retry) return { state: "unkept", record, error: failure };
      record = keepScene(record, { epoch: record.life!.epoch, checkpoint: null, error: failure.message });
      writeRecord(context.machine, context.config, record);
    }
    crashPoint("pit.settle.kept");
  }
  if (nextStep(record) === "wait") {
    const { maxAgeMs } = context.settings(mission, record.agent).limits;
    const fresh = refreshDecision(record, context.machine.clock.nowMs(), maxAgeMs);
    if (fresh !== record) writeRecord(context.machine, context.config, fresh);
    record = fresh;
  }
  if (nextStep(record) === "decide") {
    record = decide(context, mission, record);
    crashPoint("pit.settle.decided");
  }
  return { state: "settled", record };
}

async function recordEnd(
  context: PitContext,
  mission: MissionId,
  record: MissionRecord,
  options: SettleOptions,
): Promise<MissionRecord> {
  const { machine, config } = context;
  const { epoch } = record.life!;
  const settings = context.settings(mission, record.agent);
  const cell = cellPaths(config, mission);
  const exit = exitOf(context, mission, epoch);
  const bootId = machine.processes.bootId();
  const mine = lifeOf(readLife(config, mission), epoch);
  // A keeper that wrote an exit has ended everything itself.
  const marks = { cell: cell.root, epoch, life: mine, bootId };
  const ending =
    exit === undefined && (mine === undefined || mine.keeper.bootId === bootId)
      ? await endSurvivors(machine.clock, marks, settings.leftoverGraceSeconds * 1000)
      : { ended: 0, immortal: [] };
  if (ending.immortal.length > 0) {
    throw new LazarusError(
      "AGENT_IMMORTAL",
      `process ${ending.immortal.join(", ")} of ${mission} cannot be ended, so nothing new is started beside it`,
      { hint: `ps -o pid,stat,wchan,args -p ${ending.immortal.join(",")}` },
    );
  }
  const facts = await gatherEndFacts(context, record, settings, { ...options, survivors: ending.ended });
  const end = judgeEnd(facts);
  const ended = endLife(record, end, settings.limits);
  writeRecord(machine, config, ended);
  tellEnd(context, mission, record, end);
  return ended;
}

function tellEnd(context: PitContext, mission: MissionId, record: MissionRecord, end: RecordedEnd): void {
  const calm = end.kind === "departure" || record.wish !== "running";
  context.recordEvent({
    kind: calm ? "departure" : end.kind === "stall" ? "stall" : "death",
    mission,
    data: {
      epoch: end.epoch,
      exit_code: end.exit_code,
      signal: end.signal,
      evidence: end.evidence.map(({ kind }) => kind),
    },
  });
}

async function takeScene(
  context: PitContext,
  mission: MissionId,
  record: MissionRecord,
): Promise<MissionRecord> {
  const calm = record.end!.kind === "departure" || record.wish !== "running";
  const reason: Reason = record.end!.kind === "departure" ? "departure" : calm ? "stop" : "crash";
  const { ref } = await capture(context, mission, reason, null, record.agent);
  const kept = keepScene(record, { epoch: record.life!.epoch, checkpoint: ref.id, error: null });
  writeRecord(context.machine, context.config, kept);
  return kept;
}

/** Takes a checkpoint and records it. */
export async function capture(
  context: PitContext,
  mission: MissionId,
  reason: Reason,
  message: string | null,
  agent: string | null,
): Promise<CheckpointResult> {
  const result = await takeCheckpoint(context.openMission(mission), { reason, message, agent });
  if (result.finished !== undefined)
    context.log(`${mission}: finished an interrupted restore of ${result.finished.target} first`);
  return result;
}

function decide(context: PitContext, mission: MissionId, record: MissionRecord): MissionRecord {
  const nowMs = context.machine.clock.nowMs();
  const decision = considerRevival(context, mission, record);
  const decided = enterDecision(record, decision, nowMs);
  writeRecord(context.machine, context.config, decided);
  const data = { epoch: record.life!.epoch, action: decision.action, reason: decision.reason };
  if (decision.action === "tombstone") context.recordEvent({ kind: "tombstone", mission, data });
  if (decision.action === "tombstone" || decision.action === "ask")
    context.recordEvent({ kind: "alert", mission, data });
  return decided;
}

/** What the policy says now of the life that ended. Reads, changes nothing. */
export function considerRevival(
  context: PitContext,
  mission: MissionId,
  record: MissionRecord,
  settings: PitSettings = context.settings(mission, record.agent),
): Decision {
  const { machine } = context;
  const obstacle = findObstacle(context, record);
  return decideRevival(
    situationOf(record, {
      mode: record.revive ?? settings.revive,
      limits: settings.limits,
      olderCheckpoints: obstacle === undefined ? olderCheckpoints(context, mission, record) : [],
      obstacle: obstacle === undefined ? null : `${obstacle.says}; ${obstacle.hint}`,
      nowMs: machine.clock.nowMs(),
      chance: machine.ids.bytes(1)[0]! / 255,
    }),
  );
}

/** Checkpoints from before it began to go wrong, newest first; equals of the scene would not help. */
function olderCheckpoints(context: PitContext, mission: MissionId, record: MissionRecord): string[] {
  const since = troubleStartMs(record);
  const refs = context.openMission(mission).vault.list();
  const scene = refs.find(({ id }) => id === record.scene?.checkpoint);
  const found: string[] = [];
  const seen = new Set<string>(scene === undefined ? [] : [scene.manifest]);
  for (const ref of refs.toReversed()) {
    if (since !== undefined && ref.createdAtMs >= since) continue;
    if (seen.has(ref.manifest)) continue;
    seen.add(ref.manifest);
    found.push(ref.id);
  }
  return found;
}
