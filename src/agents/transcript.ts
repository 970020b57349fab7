// What all transcripts have in common. An adapter turns the lines of its agent's files into steps; the position
// of the conversation and what people see are computed from the steps. Pure; transcripts are untrusted, so nothing here throws for bad input.
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import type {
  Followed,
  Position,
  ToolCall,
  TranscriptEntry,
  TranscriptReader,
  TranscriptText,
} from "./adapter.ts";

export type Step = { readonly atMs: number | null } & (
  | { readonly kind: "prompt"; readonly text: string }
  /** Several with one id are one response. `ends`: the model handed over to the user. */
  | { readonly kind: "response"; readonly id: string | null; readonly text: string; readonly ends: boolean }
  | { readonly kind: "call"; readonly call: ToolCall }
  /** `id` is null where the agent has none: the oldest open call. */
  | { readonly kind: "result"; readonly id: string | null; readonly text: string }
  /** Something the agent itself added: an API error, a compaction. It ends no call or turn. */
  | { readonly kind: "system"; readonly text: string }
  /** The agent says that the turn has ended. */
  | { readonly kind: "end" }
  /** The conversation is written again from its beginning: what came before no longer counts. */
  | { readonly kind: "reset" }
);

export interface Lines {
  readonly values: readonly JsonObject[];
  readonly damaged: number;
}

/** A last line without a newline is being written, or was cut off: it is ignored. */
export function readLines(text: string): Lines {
  const values: JsonObject[] = [];
  let damaged = 0;
  const lines = text.split("\n");
  lines.pop();
  for (const line of lines) {
    if (line.trim() === "") continue;
    const value = parseJson(line);
    if (isJsonObject(value)) values.push(value);
    else damaged += 1;
  }
  return { values, damaged };
}

export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

interface FileRoles {
  /** Files of subagents: only the calls that they have open matter. */
  readonly isSide?: (name: string) => boolean;
  readonly isTranscript?: (name: string) => boolean;
}

/**
 * A reader for transcripts of JSON lines. `stepsOf` gets one line at a time, so reading can continue in a growing file. Of several
 * main files of one session, the conversation is in the one that was written last.
 */
export function jsonLinesReader(
  stepsOf: (line: JsonObject) => readonly Step[],
  { isSide = () => false, isTranscript = () => true }: FileRoles = {},
): TranscriptReader {
  const follow = (before: Followed | null, appended: readonly TranscriptText[]): Followed => {
    const memory: Memory = { ...(before?.memory as Memory | undefined) };
    for (const { name, text } of appended.filter((file) => isTranscript(file.name))) {
      const { values, damaged } = readLines(text);
      const tally = memory[name] ?? NOTHING;
      memory[name] = values.flatMap(stepsOf).reduce(count, { ...tally, damaged: tally.damaged + damaged });
    }
    return { position: combine(memory, isSide), memory };
  };
  return {
    follow,
    position: (files) => follow(null, files).position,
    entries: (files) => {
      const own = files.filter(({ name }) => isTranscript(name) && !isSide(name));
      const { memory } = follow(null, own);
      const main = newest(memory as Memory, isSide)?.[0];
      return own
        .filter(({ name }) => name === main)
        .flatMap(({ text }) => entriesOf(readLines(text).values.flatMap(stepsOf)));
    },
  };
}

/** The state of `count` after some steps. JSON: kept from one reading to the next. */
interface Tally {
  readonly turn: number;
  readonly last: ToolCall | null;
  readonly open: readonly { readonly call: ToolCall; readonly atMs: number | null }[];
  /** Id of the response that is being read; undefined after a prompt. */
  readonly response?: string | null;
  readonly isFinished: boolean;
  readonly promptMs: number | null;
  /** Time of the last response. */
  readonly responseMs: number;
  readonly damaged: number;
}

/** The state for each file. */
type Memory = Record<string, Tally>;

const NOTHING: Tally = {
  turn: 0,
  last: null,
  open: [],
  isFinished: false,
  promptMs: null,
  responseMs: 0,
  damaged: 0,
};

/** A call stays open until its result, the next response or the next prompt: after that the agent has moved on. */
function count(before: Tally, step: Step): Tally {
  switch (step.kind) {
    case "prompt": {
      const { response: _, ...rest } = before;
      return { ...rest, open: [], isFinished: false, promptMs: step.atMs };
    }
    case "response": {
      const isSame = step.id !== null && step.id === before.response;
      const { turn, open } = isSame ? before : { turn: before.turn + 1, open: [] };
      const responseMs = step.atMs ?? before.responseMs;
      return { ...before, turn, open, response: step.id, isFinished: step.ends, responseMs };
    }
    case "call": {
      const { call, atMs } = step;
      return { ...before, last: call, open: [...before.open, { call, atMs }], isFinished: false };
    }
    case "result": {
      const at = step.id === null ? 0 : before.open.findIndex(({ call }) => call.id === step.id);
      return { ...before, open: at === -1 ? before.open : before.open.toSpliced(at, 1), isFinished: false };
    }
    case "system":
      return { ...before, isFinished: false };
    case "end":
      return { ...before, isFinished: true };
    case "reset":
      return { ...NOTHING, damaged: before.damaged };
  }
}

/** The main file with the newest response; the first one when there is none. */
function newest(memory: Memory, isSide: (name: string) => boolean): [string, Tally] | undefined {
  return Object.entries(memory)
    .filter(([name]) => !isSide(name))
    .reduce<[string, Tally] | undefined>(
      (best, each) => (best === undefined || each[1].responseMs > best[1].responseMs ? each : best),
      undefined,
    );
}

/** A call that a subagent had open before the last prompt belongs to an earlier life. */
function combine(memory: Memory, isSide: (name: string) => boolean): Position {
  const main = newest(memory, isSide)?.[1] ?? NOTHING;
  const others = Object.entries(memory)
    .filter(([name]) => isSide(name))
    .flatMap(([, { open }]) => open.filter(({ atMs }) => (atMs ?? 0) >= (main.promptMs ?? 0)));
  const open = [...main.open, ...others].map(({ call }) => call);
  const damagedLines = Object.values(memory).reduce((sum, { damaged }) => sum + damaged, 0);
  return {
    turn: main.turn,
    last: main.last,
    open,
    isFinished: main.isFinished && open.length === 0,
    damagedLines,
  };
}

const ROLES = {
  prompt: "user",
  response: "assistant",
  call: "assistant",
  result: "tool",
  system: "system",
} as const;

export function entriesOf(steps: readonly Step[]): TranscriptEntry[] {
  return steps
    .slice(steps.findLastIndex(({ kind }) => kind === "reset") + 1)
    .filter((step) => step.kind !== "reset" && step.kind !== "end")
    .map((step) => ({
      role: ROLES[step.kind],
      text: step.kind === "call" ? step.call.summary : step.text,
      call: step.kind === "call" ? step.call : null,
      atMs: step.atMs,
    }))
    .filter(({ role, text }) => role !== "assistant" || text !== "");
}

const SUMMARY_LIMIT = 200;
/** Arguments that describe a call best, in order of preference. */
const DESCRIPTIVE_ARGUMENTS = [
  "command",
  "cmd",
  "file_path",
  "filePath",
  "path",
  "absolute_path",
  "url",
  "pattern",
  "query",
  "description",
];

/** A call, from its tool and its arguments as the model passed them. */
export function toolCall(id: string | null, tool: string, input: unknown): ToolCall {
  const fields = isJsonObject(input) ? input : {};
  const command = shellCommand(fields);
  const description = DESCRIPTIVE_ARGUMENTS.map((name) => fields[name]).find(
    (value) => typeof value === "string" && value !== "",
  );
  const summary = command ?? (typeof description === "string" ? description : JSON.stringify(input ?? {}));
  return { id, tool, summary: oneLine(summary), command };
}

/** `command`, `cmd`, or the words of `["bash", "-lc", LINE]`. */
function shellCommand({ command, cmd }: JsonObject): string | null {
  const value = command ?? cmd;
  if (typeof value === "string") return value;
  if (!Array.isArray(value) || !value.every((word) => typeof word === "string")) return null;
  const words: readonly string[] = value;
  return words.length === 3 && /^-l?c$/.test(words[1]!) ? words[2]! : words.join(" ");
}

export function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length > SUMMARY_LIMIT ? `${line.slice(0, SUMMARY_LIMIT - 1)}…` : line;
}

/** ISO time, or milliseconds. */
export function timeMs(value: unknown): number | null {
  const time = typeof value === "number" ? value : typeof value === "string" ? Date.parse(value) : Number.NaN;
  return Number.isFinite(time) ? time : null;
}

export function asObject(value: unknown): JsonObject {
  return isJsonObject(value) ? value : {};
}

export function asArray(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

export function asText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** The text of a message: itself, or the `text` of its parts. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  return asArray(content)
    .map((part) => asText(asObject(part).text))
    .filter((text) => text !== "")
    .join("\n");
}
