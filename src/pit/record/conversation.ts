// What a record says about the conversation of an agent CLI. Plain data, stored.
import type { ToolCall } from "../../agents/adapter.ts";

/** How a life began its conversation. */
export interface LifeConversation {
  readonly adapter: string;
  /** Null: the agent chooses its own id. */
  readonly session: string | null;
  /** start: as the user typed it. resume: the earlier conversation. restart: a new one, with the note. */
  readonly how: "start" | "resume" | "restart";
  /** Turn of the conversation when this life started, to recognize what this life added. */
  readonly turn: number;
  /** This life was started with our hooks. */
  readonly hooks?: true;
  /** The CLI takes no prompt when it resumes: the user has to type before the agent continues. */
  readonly waits?: true;
}

export const CALL_OUTCOMES = ["done", "not-done", "unknown"] as const;

/** What the user says about a call that was cut off. */
export type CallOutcome = (typeof CALL_OUTCOMES)[number];

/** A tool call that was running when its life ended. Secrets are redacted. */
export interface OpenCall extends Omit<ToolCall, "id"> {
  /** Id in the effect history; unique within the mission. */
  readonly id: string;
  /** It matches one of the user's effect rules: the user is asked whether it happened. */
  readonly marked: boolean;
  /** Null: not asked, or not answered yet. */
  readonly outcome: CallOutcome | null;
}

/** Calls that the user has to answer before a revival. */
export function unansweredCalls(calls: readonly OpenCall[] = []): readonly OpenCall[] {
  return calls.filter(({ marked, outcome }) => marked && outcome === null);
}
