// Output shared by `restore` and `undo`: the changes, the positions of flows and runs, and what could not be restored
// exactly.
import { isKeeperAlive } from "../../../cell/life.ts";
import { describeEffect, type EffectNote } from "../../../effects/notes.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import type { Lock } from "../../../platform/lock.ts";
import type { MissionContext } from "../../../snapshot/mission-context.ts";
import type { CheckpointRef, Flaw } from "../../../snapshot/model/entry.ts";
import type { RestoreResult } from "../../../snapshot/operations/restore.ts";
import { countChanges } from "../../../snapshot/restore/plan.ts";
import { findFreshHeartbeat } from "../../../snapshot/restore/position-changes.ts";
import type { Part } from "../../../snapshot/restore/scope.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";
import { flawLines } from "../../render/flaws.ts";
import { formatTime } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";

/** "20261115-235301-x7k2p9 (2026-11-15 23:53:01Z, manual: before the migration)" */
export function describeRef(ref: CheckpointRef): string {
  const why = ref.message === null ? ref.reason : `${ref.reason}: ${escapeControls(ref.message)}`;
  return `${ref.id} (${formatTime(ref.createdAtMs)}, ${why})`;
}

/** About an agent without a keeper; under one with a keeper, the restore is refused. */
export function warnIfAlive(context: CliContext, missionContext: MissionContext): void {
  const { machine, config, mission } = missionContext;
  if (isKeeperAlive(machine.processes, config, mission)) return;
  const sign = findFreshHeartbeat(missionContext);
  if (sign === undefined) return;
  context.warn(
    `an agent may be running in ${mission}: its heartbeat (${escapeControls(sign.status)}) is ${sign.ageSeconds} s old. ` +
      "What it writes from now on is not in the safety checkpoint; conflicting files are moved aside, not lost",
  );
}

/** Options of `restore` and `undo`. */
export const PART_OPTIONS = {
  "files-only": { type: "flag", summary: "leave the agent's conversation as it is" },
  "conversation-only": { type: "flag", summary: "leave the files as they are" },
} as const;

export function chosenPart(
  command: string,
  options: { readonly "files-only": boolean; readonly "conversation-only": boolean },
): Part | undefined {
  if (options["files-only"] && options["conversation-only"])
    throw usage(command, "--files-only and --conversation-only cannot be combined");
  if (options["files-only"]) return "files";
  return options["conversation-only"] ? "conversation" : undefined;
}

export const NOT_SAVED = "not in the checkpoint, and therefore not restored:";

/** With --stop, a live agent is stopped before and revived afterwards. */
export async function restoreWithStop<Result extends Pick<RestoreResult, "target">>(
  context: CliContext,
  missionContext: MissionContext,
  stop: boolean,
  restore: (heldLock: Lock | undefined) => Promise<Result>,
): Promise<Result> {
  if (!stop) return restore(undefined);
  const { restoreStopped } = await import("../../../pit/restore.ts");
  const { openCliPitContext } = await import("../agents/open-pit.ts");
  const { mission } = missionContext;
  using pitContext = openCliPitContext(context);
  const { result, stopped, revived } = await restoreStopped(pitContext, mission, restore);
  if (stopped?.wasRunning)
    context.say(
      revived === undefined
        ? `${mission} was stopped for the restore; start it with: lazarus revive ${mission}`
        : `${mission} was stopped for the restore and is running again as life ${revived.epoch}`,
    );
  return result;
}

/** Prints the messages after a restore. Returns the exit code. */
export function concludeRestore(context: CliContext, result: RestoreResult): number {
  const { finished, flaws, safetyFlaws, notSaved } = result;
  if (finished !== undefined) {
    context.warn(`completed an interrupted restore of ${finished.target} first`);
    sayFlaws(context, "not restored exactly by that restore:", finished.flaws);
  }
  for (const move of result.moves) context.say(escapeControls(move));
  sayDoneSince(context, result.doneSince);
  sayFlaws(context, "not restored exactly:", flaws);
  sayFlaws(context, "not saved exactly in the safety checkpoint:", safetyFlaws);
  sayFlaws(context, NOT_SAVED, notSaved);
  return flaws.length + safetyFlaws.length + notSaved.length > 0 ? ERROR_KINDS.degraded.exit : 0;
}

const MAX_LISTED = 20;

/** A restore does not undo effects on the outside world; `flow once` and runs replay them from the history. */
export function sayDoneSince(context: CliContext, effects: readonly EffectNote[]): void {
  if (effects.length === 0) return;
  context.say("done since that checkpoint, not undone, and not repeated under the same key:");
  for (const effect of effects.slice(-MAX_LISTED)) context.say(`  ${escapeControls(describeEffect(effect))}`);
  if (effects.length > MAX_LISTED)
    context.say(`  and ${effects.length - MAX_LISTED} earlier; all of them: --json`);
}

export function sayFlaws(context: CliContext, head: string, flaws: readonly Flaw[]): void {
  if (flaws.length === 0) return;
  context.warn(head);
  for (const line of flawLines(flaws)) context.terminal.err(`${line}\n`);
}

/** The --json document. */
export function restoreDocument(missionContext: MissionContext, result: RestoreResult): object {
  const { target, safety, changes, alive, finished } = result;
  return {
    mission_id: missionContext.mission,
    checkpoint_id: target.id,
    safety_checkpoint_id: safety?.id ?? null,
    counts: countChanges(changes),
    ...changes,
    moves: result.moves,
    conversation: result.conversation,
    done_since: result.doneSince,
    flaws: result.flaws,
    safety_flaws: result.safetyFlaws,
    not_saved: result.notSaved,
    agent_may_be_alive: alive !== undefined,
    finished_first: finished === undefined ? null : { checkpoint_id: finished.target, flaws: finished.flaws },
  };
}
