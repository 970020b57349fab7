// The note that a revived agent CLI gets as its prompt: short facts, independent of what the conversation says. Pure. Commands
// and names come from agents: each is one line, shown as data and never as an instruction.

import { describeEffect, type EffectNote } from "../../effects/notes.ts";
import { formatCount } from "../../platform/count.ts";
import { describeEnd } from "../describe.ts";
import type { OpenCall } from "../record/conversation.ts";
import { openFlows, type ResumeFacts } from "./resume-note.ts";

/** What the note says about the conversation itself. */
export interface ConversationFacts {
  readonly how: "resume" | "restart";
  /** Why it starts over; null when it is resumed. */
  readonly problem: string | null;
  /** Where the conversation is now, and where it was when the last life ended; null when that is unknown. */
  readonly turn: number | null;
  readonly turnAtEnd: number | null;
  /** The last life had ended its turn and was waiting for the user. */
  readonly isWaiting: boolean;
  /** What the agent's CLI itself tells the model about a cut-off call; null: nothing. */
  readonly placeholder: string | null;
  /** Lines of the transcript that cannot be read. */
  readonly damagedLines: number;
  /** Calls of a conversation that is not continued, oldest first, without those that were cut off. */
  readonly lostCalls: readonly string[];
  /** Paths that changed after the last life had ended. */
  readonly changedSince: readonly string[];
}

const LISTED = 20;
const LINE_LIMIT = 500;

export function resumePrompt(facts: ResumeFacts, conversation: ConversationFacts, handoff: string): string {
  const { record, epoch } = facts;
  const when = record.end === null ? "" : ` at ${new Date(record.end.at_ms).toISOString()}`;
  const ended = record.end === null ? "ended" : describeEnd(record.end);
  return [
    `[Lazarus] You were interrupted and started again: this is life ${epoch} of the mission ${record.mission}. The life before it: ${ended}${when}. What follows is fact, even where the conversation says otherwise.`,
    ...conversationLines(conversation),
    ...fileLines(facts, conversation),
    ...callLines(record.end?.open_calls ?? [], conversation),
    ...effectLines("Already done, not undone, and not to be repeated:", facts.doneSince),
    ...effectLines("Outcome unknown; check before you repeat any of it:", otherUnknown(facts)),
    ...openFlows(facts).map(
      (flow) => `The next step of the flow ${quote(flow.workflowId)} is ${quote(flow.currentStep)}.`,
    ),
    `More about this: ${handoff}`,
    nextLine(conversation),
  ].join("\n");
}

function conversationLines({ how, problem, damagedLines, lostCalls }: ConversationFacts): string[] {
  const lines: string[] = [];
  if (how === "restart")
    lines.push(
      `Its conversation could not be continued: ${problem}. Earlier lives may have done part of the work; look at the files before you do anything again.`,
    );
  if (lostCalls.length > 0) {
    const older = lostCalls.length - LISTED;
    lines.push(
      `These calls were made in it and ended; do not repeat them${older > 0 ? ` (and ${older} older ones)` : ""}:`,
      ...list(lostCalls.slice(-LISTED)),
    );
  }
  if (damagedLines > 0)
    lines.push(
      `${formatCount(damagedLines, "damaged line")} of the transcript ${damagedLines === 1 ? "is" : "are"} missing here.`,
    );
  return lines;
}

function fileLines(facts: ResumeFacts, { how, turn, turnAtEnd, changedSince }: ConversationFacts): string[] {
  const target = facts.stepBackTo ?? facts.restoredTo ?? null;
  if (target !== null) {
    const isMoved = how === "resume" && turn !== null && turnAtEnd !== null && turn !== turnAtEnd;
    return [
      isMoved
        ? `Files and conversation were restored to checkpoint ${target}, so they agree; what came after it is gone.`
        : `The files were restored to checkpoint ${target}; what you did after it is not in the files.`,
    ];
  }
  if (changedSince.length === 0) return ["The files are as that life left them."];
  return ["These files have changed since that life ended; read them again:", ...list(changedSince)];
}

const OUTCOMES = {
  unknown:
    "was running when that life ended. Whether it took effect is not known: check that before you repeat it",
  done: "was cut off, but the user says that it took effect: do not repeat it",
  "not-done": "was cut off, and the user says that it did not take effect: do it again if it is still needed",
} as const;

function callLines(calls: readonly OpenCall[], { how, placeholder }: ConversationFacts): string[] {
  const lines = calls.slice(0, LISTED).flatMap(({ tool, command, summary, outcome }) => {
    return [
      `A call of ${quote(tool)} ${OUTCOMES[outcome ?? "unknown"]}.`,
      ...list([command ?? summary].filter((text) => text !== "")),
    ];
  });
  if (calls.length > 0 && how === "resume" && placeholder !== null)
    lines.push(`Where the conversation says ${quote(placeholder)}, that is a placeholder, not a result.`);
  // Such an agent may have lost a cut-off call from its transcript, and no hook reported one.
  if (calls.length === 0 && how === "resume" && placeholder === null)
    lines.push(
      "If your last message announced a tool call that the conversation does not show, check whether it took effect before you repeat it.",
    );
  return lines;
}

/** Calls of the last life are listed with what is known about them. */
function otherUnknown({ unknown, record }: ResumeFacts): EffectNote[] {
  const listed = new Set(record.end?.open_calls?.map(({ id }) => id));
  return unknown.filter(({ source, id }) => source !== "call" || !listed.has(id));
}

function effectLines(title: string, effects: readonly EffectNote[]): string[] {
  return effects.length === 0 ? [] : [title, ...list(effects.map(describeEffect))];
}

function nextLine({ how, isWaiting }: ConversationFacts): string {
  if (how === "restart") return "Do not repeat what is already done. Your task:";
  if (isWaiting) return "Your last turn had ended. Confirm in one short line and wait for the user.";
  return "Continue where you stopped. Do not repeat what is already done.";
}

function list(lines: readonly string[]): string[] {
  const shown = lines.slice(0, LISTED).map((line) => `    ${oneLine(line)}`);
  return lines.length > LISTED ? [...shown, `    … and ${lines.length - LISTED} more`] : shown;
}

function quote(text: string): string {
  return JSON.stringify(oneLine(text));
}

function oneLine(text: string): string {
  return text
    .replaceAll(/[\s\p{Cc}]+/gu, " ")
    .trim()
    .slice(0, LINE_LIMIT);
}
