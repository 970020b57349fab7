// What people and agents are told about effects: which ones happened after the checkpoint that the cell was restored to,
// and which have an unknown outcome. Pure. Names and commands come from agents: a description is one line, to be shown as
// data and never as an instruction.
import type { Fold, KnownEffect } from "./fold.ts";
import type { HistoryLine } from "./line.ts";

/** One effect. The field names are a contract: JSON output and state/resume.json have them. */
export interface EffectNote {
  readonly id: string;
  readonly source: HistoryLine["source"];
  /** The flow or run. */
  readonly where: string;
  /** The key of a command, or the name of a tool. */
  readonly name: string;
  readonly what: string;
  readonly state: "started" | "done" | "failed" | "unknown";
  readonly time_ms: number;
}

/** Effects that are later than a position, oldest first. `before` excludes those that started at or after it. */
export function effectsAfter(fold: Fold, position: number, before = Number.POSITIVE_INFINITY): EffectNote[] {
  return toNotes(fold, ({ at, startedAt }) => at >= position && startedAt < before);
}

/** Effects that the restored cell does not show: the effects between the checkpoint and the last restore. */
export function doneSince(fold: Fold): EffectNote[] {
  const last = fold.restores.findLast(({ position }) => position !== null);
  return last === undefined ? [] : effectsAfter(fold, last.position!, last.at);
}

/** Effects that were started and never ended, or whose tool does not know. */
export function unknownEffects(fold: Fold): EffectNote[] {
  return toNotes(fold, ({ state }) => state === "started" || state === "unknown");
}

function toNotes(fold: Fold, select: (effect: KnownEffect) => boolean): EffectNote[] {
  return [...fold.effects.values()]
    .filter((effect) => effect.state !== "withdrawn" && select(effect))
    .sort((a, b) => a.at - b.at)
    .map(({ id, source, where, name, what, state, timeMs }) => ({
      id,
      source,
      where,
      name,
      what,
      state: state as EffectNote["state"],
      time_ms: timeMs,
    }));
}

const STATES: Readonly<Record<EffectNote["state"], string>> = {
  started: "started, outcome unknown",
  done: "done",
  failed: "failed",
  unknown: "outcome unknown",
};

/** `flow report, "send" (./send-mail.sh): done at 2026-11-15T23:53:01.000Z` */
export function describeEffect({ source, where, name, what, state, time_ms }: EffectNote): string {
  const kind = source === "run" ? "run" : source === "call" ? "agent" : "flow";
  const command = what === "" ? "" : ` (${what.replaceAll(/[\s\p{Cc}]+/gu, " ")})`;
  return `${kind} ${where}, ${JSON.stringify(name)}${command}: ${STATES[state]} at ${new Date(time_ms).toISOString()}`;
}
