// Writes tool calls that were cut off to the effect history: as unknown, or with the outcome that the user gave (INV-5).
import { openHistory } from "../../effects/history.ts";
import type { Machine } from "../../platform/machine.ts";
import type { CallOutcome } from "../record/conversation.ts";
import type { MissionRecord } from "../record/record.ts";

const STATES = { done: "done", "not-done": "withdrawn", unknown: "unknown" } as const;

/** Writes what is known about the calls of the last life, unless the history already has it. */
export function recordCalls(machine: Machine, cellRoot: string, { adapter, end }: MissionRecord): void {
  if (end?.open_calls === undefined || end.open_calls.length === 0) return;
  const history = openHistory(machine, cellRoot);
  for (const { id, tool, summary, outcome } of end.open_calls) {
    const state = STATES[outcome ?? "unknown"];
    if (history.find("call", id)?.state === state) continue;
    history.append({
      source: "call",
      state,
      id,
      attempt: 1,
      name: tool,
      where: adapter ?? "",
      what: summary,
      epoch: end.epoch,
    });
  }
}

/** What the user says about a call; `index` null: about all of them. */
export interface CallAnswer {
  readonly index: number | null;
  readonly outcome: CallOutcome;
}

export function answerCalls(record: MissionRecord, answers: readonly CallAnswer[]): MissionRecord {
  const { end } = record;
  if (end?.open_calls === undefined) return record;
  const open_calls = end.open_calls.map((call, index) => {
    const answer = answers.findLast((each) => each.index === null || each.index === index);
    return answer === undefined ? call : { ...call, outcome: answer.outcome };
  });
  return { ...record, end: { ...end, open_calls } };
}
