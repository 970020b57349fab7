// One line of an effect history: JSON with a checksum. Written once and never changed. Pure.

import { quietly } from "../platform/errors.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import { sha256Hex } from "../platform/sha256.ts";

/**
 * `withdrawn`: known not to have happened. `restored` and `forked` are not about an effect: the cell went back to a
 * checkpoint, or the history up to here is that of another mission.
 */
export type LineState = "started" | "done" | "failed" | "unknown" | "withdrawn" | "restored" | "forked";

const STATES: ReadonlySet<unknown> = new Set<LineState>([
  "started",
  "done",
  "failed",
  "unknown",
  "withdrawn",
  "restored",
  "forked",
]);

/** What happened to one effect, or to the whole mission. Field names are fixed: they are stored. */
export interface HistoryLine {
  readonly time_ms: number;
  /** `once`: a command of a flow. `run`: a tool call of a run. `call`: one of an agent CLI. `mission`: not an effect. */
  readonly source: "once" | "run" | "call" | "mission";
  readonly state: LineState;
  /** Id of the effect, unique within the mission. */
  readonly id: string;
  /** Counts the starts of the effect. A second start with the same number lost a race. */
  readonly attempt: number;
  /** SHA-256 of the command or of the tool's input. */
  readonly digest?: string;
  /** For people: the key of a command, or the name of a tool. */
  readonly name?: string;
  /** For people: which flow or run, and what it does, without secrets. */
  readonly where?: string;
  readonly what?: string;
  /** Epoch of the life or lease that wrote the line. */
  readonly epoch?: number | null;
  /** The idempotency key that a tool received, if it is not the id. */
  readonly key?: string;
  /** Which process started it, in the format of the source. */
  readonly owner?: JsonObject;
  /** How it ended, in the format of the source; bounded and without secrets. */
  readonly result?: unknown;
  /** `restored`: the position of the checkpoint; null when only some paths were restored. */
  readonly position?: number | null;
}

const SUM = /,"sum":"([0-9a-f]{16})"\}$/;

export function encodeLine(line: HistoryLine): string {
  const json = JSON.stringify(line);
  return `${json.slice(0, -1)},"sum":"${checksum(json)}"}`;
}

/** Undefined for a line that is torn, damaged or not from this history. */
export function decodeLine(text: string): HistoryLine | undefined {
  const sum = SUM.exec(text);
  if (sum === null) return undefined;
  const json = `${text.slice(0, sum.index)}}`;
  if (checksum(json) !== sum[1]) return undefined;
  const value: unknown = quietly(() => JSON.parse(json));
  if (!isJsonObject(value) || typeof value.id !== "string" || !STATES.has(value.state)) return undefined;
  return value as unknown as HistoryLine;
}

function checksum(json: string): string {
  return sha256Hex(json).slice(0, 16);
}
