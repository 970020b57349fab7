// The point in time that an inspecting command looks at: `m`, or `m:CHECKPOINT` with an id, a part of it, or a time.
import type { MissionContext } from "../../../snapshot/mission-context.ts";
import type { CheckpointRef } from "../../../snapshot/model/entry.ts";
import { findCheckpoint } from "../../../snapshot/model/find-checkpoint.ts";
import type { CliContext } from "../../context.ts";
import { formatDuration, formatTime } from "../../render/format.ts";

/** Splits `m:CHECKPOINT`; the checkpoint may contain colons: `m:14:30`. */
export function splitPoint(text: string): { readonly mission: string; readonly checkpoint?: string } {
  const colon = text.indexOf(":");
  if (colon < 0) return { mission: text };
  return { mission: text.slice(0, colon), checkpoint: text.slice(colon + 1) };
}

export function findPoint(
  { vault, mission, machine }: MissionContext,
  text: string | undefined,
): CheckpointRef {
  return findCheckpoint(vault.list(), { mission, text, nowMs: machine.clock.nowMs() });
}

/** Says which checkpoint was chosen, unless the user named it in full. */
export function sayPoint(context: CliContext, ref: CheckpointRef, typed: string | undefined): void {
  if (typed === ref.id) return;
  const age = formatDuration((context.machine.clock.nowMs() - ref.createdAtMs) / 1000);
  context.say(`checkpoint ${ref.id} (${formatTime(ref.createdAtMs)}, ${age} ago, ${ref.reason})`);
}

/** Says which checkpoints could not be read, and are therefore missing from the answer. */
export function warnUnreadable(context: CliContext, mission: string, refs: readonly CheckpointRef[]): void {
  if (refs.length === 0) return;
  const ids = refs.map(({ id }) => id).join(", ");
  context.warn(`not searched, because they cannot be read: ${ids}; see: lazarus verify ${mission}`);
}
