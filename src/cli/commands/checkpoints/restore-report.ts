// What `restore` and `undo` say and record alike: the changes, where flows and runs go, what could not be exact, and
// what to type to go back.
import { ERROR_KINDS } from "../../../platform/errors.ts";
import type { EventKind } from "../../../registry/registry.ts";
import type { MissionContext } from "../../../snapshot/mission-context.ts";
import type { CheckpointRef, Flaw } from "../../../snapshot/model/entry.ts";
import type { RestoreResult } from "../../../snapshot/operations/restore.ts";
import { countChanges } from "../../../snapshot/restore/plan.ts";
import { findFreshHeartbeat } from "../../../snapshot/restore/position-changes.ts";
import type { CliContext } from "../../context.ts";
import { flawLines } from "../../render/flaws.ts";
import { formatTime } from "../../render/format.ts";
import { harmless } from "../../render/paint.ts";

/** "20261115-235301-x7k2p9 (2026-11-15 23:53:01Z, manual: before the migration)" */
export function describeRef(ref: CheckpointRef): string {
  const why = ref.message === null ? ref.reason : `${ref.reason}: ${harmless(ref.message)}`;
  return `${ref.id} (${formatTime(ref.createdAtMs)}, ${why})`;
}

export function warnIfAlive(context: CliContext, missionContext: MissionContext): void {
  const sign = findFreshHeartbeat(missionContext);
  if (sign === undefined) return;
  context.warn(
    `an agent may be at work in ${missionContext.mission}: its heartbeat (${harmless(sign.status)}) is ${sign.ageSeconds} s old. ` +
      "What it writes from now on is not in the safety checkpoint; where it is in the way it is set aside, not lost",
  );
}

/** The talk after a restore. Returns the exit code. */
export function concludeRestore(context: CliContext, result: RestoreResult): number {
  const { finished, flaws, safetyFlaws } = result;
  if (finished !== undefined) {
    context.warn(`a restore of ${finished.target} that had been interrupted was finished first`);
    sayFlaws(context, "of that one, not exact:", finished.flaws);
  }
  for (const move of result.moves) context.say(harmless(move));
  sayFlaws(context, "not restored exactly:", flaws);
  sayFlaws(context, "the safety checkpoint could not save exactly:", safetyFlaws);
  return flaws.length + safetyFlaws.length > 0 ? ERROR_KINDS.degraded.exit : 0;
}

export function sayFlaws(context: CliContext, head: string, flaws: readonly Flaw[]): void {
  if (flaws.length === 0) return;
  context.warn(head);
  for (const line of flawLines(flaws)) context.terminal.err(`${line}\n`);
}

/** The document of --json. */
export function restoreDocument(missionContext: MissionContext, result: RestoreResult): object {
  const { target, safety, changes, alive, finished } = result;
  return {
    mission_id: missionContext.mission,
    checkpoint_id: target.id,
    safety_checkpoint_id: safety?.id ?? null,
    counts: countChanges(changes),
    ...changes,
    moves: result.moves,
    flaws: result.flaws,
    safety_flaws: result.safetyFlaws,
    agent_may_be_alive: alive !== undefined,
    finished_first: finished === undefined ? null : { checkpoint_id: finished.target, flaws: finished.flaws },
  };
}
