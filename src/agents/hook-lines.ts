// What an agent's hooks reported, one JSON line per event, outside the cell and never restored (0600: commands may contain
// secrets; readers redact what they show). `lazarus hook` appends between an agent's steps, so nothing heavy is imported.
// A line is durable before the hook returns, so a tool call is on record before it runs (INV-5). A torn last line is
// ignored. The size is bounded: a full file replaces the older of two.
import { closeSync, constants, fstatSync, openSync, readSync, statSync } from "node:fs";
import { join } from "node:path";
import { appendLine } from "../platform/durable.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import type { HookEvent, PatternClass, ToolCall } from "./adapter.ts";
import { findAdapter } from "./adapters.ts";
import { eventName } from "./plain-events.ts";
import { hooksFile } from "./session.ts";

/** An event, when it was reported and by which life. */
export type HookLine = { readonly at_ms: number; readonly epoch: number } & HookEvent;

/** Enough for thousands of tool calls; a start that is older than two such files is forgotten. */
const LIMIT_BYTES = 2 * 1024 * 1024;
/** More than the longest line. */
const ENOUGH_BYTES = 256 * 1024;
/** Limit of one text in a line: a command that writes a whole file is truncated. */
const TEXT_LIMIT = 8 * 1024;

function olderFile(directory: string): string {
  return join(directory, "hooks.old.jsonl");
}

export function appendHookLine(
  machine: Pick<Machine, "disk">,
  directory: string,
  line: HookLine,
  limitBytes: number = LIMIT_BYTES,
): void {
  const file = hooksFile(directory);
  // Another hook may rename at the same time; then the older file is lost early.
  if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) >= limitBytes)
    machine.disk.rename(file, olderFile(directory));
  const cut = (_: string, value: unknown) => (typeof value === "string" ? value.slice(0, TEXT_LIMIT) : value);
  appendLine(machine.disk, file, JSON.stringify(line, cut));
}

/** The lines of one life, oldest first. Damaged lines are skipped. */
export function readHookLines(directory: string, epoch: number): HookLine[] {
  const text = `${readTail(olderFile(directory))}\n${readTail(hooksFile(directory))}`;
  return text
    .split("\n")
    .flatMap(parseLine)
    .filter((line) => line.epoch === epoch);
}

/** Whether a life has reported anything. Reads only the ends of the files: the lines of the newest life are there. */
export function hasReported(directory: string, epoch: number): boolean {
  return [hooksFile(directory), olderFile(directory)].some((file) =>
    readTail(file, ENOUGH_BYTES)
      .split("\n")
      .some((text) => parseLine(text).some((line) => line.epoch === epoch)),
  );
}

/** Events after which the pit saves immediately: a turn that ended or failed, and a compaction that is about to start. */
export function isUrgent({ kind }: HookEvent): boolean {
  return kind === "turn-end" || kind === "compaction" || kind === "failure";
}

/** How much was reported, and whether anything after the first `seenBytes` is urgent. Cheap, for frequent polling. */
export function checkHookLines(
  directory: string,
  seenBytes: number,
): { readonly bytes: number; readonly isUrgent: boolean } {
  const file = hooksFile(directory);
  let bytes = 0;
  try {
    bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0;
  } catch {
    // A directory that cannot be examined holds no reports.
  }
  if (bytes === seenBytes) return { bytes, isUrgent: false };
  // A smaller file replaced the one that was full.
  const added = bytes > seenBytes ? bytes - seenBytes : bytes;
  const lines = readTail(file, added).split("\n").flatMap(parseLine);
  return { bytes, isUrgent: lines.some(isUrgent) };
}

/** The session that a life named last; parses only the lines that name one. */
export function readHookSession(directory: string, epoch: number): string | null {
  for (const file of [hooksFile(directory), olderFile(directory)]) {
    const text = readTail(file);
    for (let at = text.length; at > 0; ) {
      at = text.lastIndexOf('"kind":"session"', at - 1);
      if (at < 0) break;
      const end = text.indexOf("\n", at);
      const [line] = parseLine(text.slice(text.lastIndexOf("\n", at) + 1, end < 0 ? undefined : end));
      if (line?.kind === "session" && line.epoch === epoch && typeof line.session === "string")
        return line.session;
    }
  }
  return null;
}

/**
 * At most twice the limit: a file that something else wrote to does not fill the memory. Empty for anything but a file:
 * opening a pipe would wait for a writer, and the agent can put one here.
 */
function readTail(path: string, limitBytes: number = 2 * LIMIT_BYTES): string {
  let fd: number;
  try {
    fd = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK);
  } catch {
    return "";
  }
  try {
    const stat = fstatSync(fd);
    if (!stat.isFile()) return "";
    const length = Math.min(stat.size, limitBytes, 2 * LIMIT_BYTES);
    const buffer = Buffer.alloc(length);
    return buffer.toString("utf8", 0, readSync(fd, buffer, 0, length, stat.size - length));
  } finally {
    closeSync(fd);
  }
}

const KINDS: ReadonlySet<unknown> = new Set<HookEvent["kind"]>([
  "session",
  "prompt",
  "tool-start",
  "tool-end",
  "turn-end",
  "failure",
  "compaction",
  "session-end",
]);

/** Empty for a damaged line. */
function parseLine(text: string): readonly HookLine[] {
  if (text === "") return [];
  let line: unknown;
  try {
    line = JSON.parse(text);
  } catch {
    return [];
  }
  if (!isJsonObject(line) || typeof line.at_ms !== "number" || typeof line.epoch !== "number") return [];
  if (line.agent !== undefined) return parsePassed(line, { at_ms: line.at_ms, epoch: line.epoch });
  if (!KINDS.has(line.kind)) return [];
  if ((line.kind === "tool-start" || line.kind === "tool-end") && !isJsonObject(line.call)) return [];
  return [line as unknown as HookLine];
}

/** A line of the script of tool-reports.ts: what the CLI passed, which its adapter parses. */
function parsePassed(
  { agent, event, input }: JsonObject,
  common: Pick<HookLine, "at_ms" | "epoch">,
): HookLine[] {
  const adapter = typeof agent === "string" ? findAdapter(agent) : undefined;
  if (adapter === undefined || !isJsonObject(input)) return [];
  const name = typeof event === "string" && event !== "" ? event : eventName(input);
  return adapter.hooks.parse(name, input).map((parsed) => ({ ...common, ...parsed }));
}

/** What the hooks of one life say about it. */
export interface HookSummary {
  /** The newest session that was named; null when none was. */
  readonly session: string | null;
  readonly transcript: string | null;
  /** Calls that were reported to start and not to end, oldest first. */
  readonly openCalls: readonly ToolCall[];
  /** The last call that was reported to end, in a turn that has not ended. */
  readonly endedCall: ToolCall | null;
  /** The last turn ended, and nothing has started since. */
  readonly isFinished: boolean;
  /** The last turn failed, and nothing has started since. */
  readonly failure: { readonly class: PatternClass; readonly message: string } | null;
  /** Null: no hook has reported anything. */
  readonly lastEventMs: number | null;
}

/** Pure. The lines of one life, in order. */
export function summarizeHooks(lines: readonly HookLine[]): HookSummary {
  let session: string | null = null;
  let transcript: string | null = null;
  let openCalls: readonly ToolCall[] = [];
  let endedCall: ToolCall | null = null;
  let end: "finished" | HookSummary["failure"] = null;
  for (const line of lines) {
    switch (line.kind) {
      case "session":
        ({ session, transcript } = line);
        break;
      case "prompt":
        end = null;
        break;
      case "tool-start":
        end = null;
        openCalls = [...openCalls, line.call];
        break;
      case "tool-end":
        openCalls = closeCall(openCalls, line.call);
        endedCall = line.call;
        break;
      // A call that was denied or canceled by the user is never reported to end.
      case "turn-end":
        end = "finished";
        openCalls = [];
        endedCall = null;
        break;
      case "failure":
        end = { class: line.class, message: line.message };
        break;
    }
  }
  return {
    session,
    transcript,
    openCalls,
    endedCall,
    isFinished: end === "finished",
    failure: end === "finished" ? null : end,
    lastEventMs: lines.at(-1)?.at_ms ?? null,
  };
}

/** By the call's id; without one, the oldest call of that tool with the same summary, else of that tool. */
function closeCall(open: readonly ToolCall[], ended: ToolCall): readonly ToolCall[] {
  const sameTool = (call: ToolCall) => call.tool === ended.tool;
  // A start that could not be synced is reported twice.
  if (ended.id !== null) return open.filter((call) => call.id !== ended.id);
  const found = open.find((call) => sameTool(call) && call.summary === ended.summary) ?? open.find(sameTool);
  return open.filter((call) => call !== found);
}
