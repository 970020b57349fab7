// What the conversation module needs to know about a mission. Types only; a MissionContext has all of it.
import type { Config } from "../../cell/config.ts";
import type { Machine } from "../../platform/machine.ts";
import type { Adapter } from "../adapter.ts";

export interface ConversationCell {
  readonly machine: Machine;
  readonly config: Config;
  readonly mission: string;
  readonly cellRoot: string;
  readonly cacheDirectory: string;
  readonly findAdapter: (name: string) => Adapter | undefined;
}

/** What could not be copied or put back exactly (INV-6). `path` is relative to the cell. */
export interface Problem {
  readonly path: string;
  readonly kind: "skipped" | "degraded";
  readonly reason: string;
}

/** How far the conversation of a checkpoint has come. Field names are fixed: they are stored in the checkpoint. */
export interface ConversationPosition {
  readonly adapter: string;
  readonly session: string;
  readonly turn: number;
  /** The last tool call; null before the first. */
  readonly last: { readonly tool: string; readonly summary: string } | null;
}
