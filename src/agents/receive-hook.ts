// One call of `lazarus hook`: what the agent's CLI passed becomes hook lines of the mission's current life. On the hot
// path: an agent waits for it before and after every tool call. An earlier life is ignored (INV-4).
import { existsSync, readFileSync } from "node:fs";
import { dirname } from "node:path";
import type { Config } from "../cell/config.ts";
import { agentDirectory, readEpoch } from "../cell/fence.ts";
import { makeDirectory, replaceFile } from "../platform/durable.ts";
import { isJsonObject, type JsonObject } from "../platform/json-file.ts";
import type { Machine } from "../platform/machine.ts";
import type { Adapter, HookEvent } from "./adapter.ts";
import { appendHookLine } from "./hook-lines.ts";
import { eventName, parsePlainEvent } from "./plain-events.ts";
import { resumeNoteFile } from "./session.ts";
import { reportedSession } from "./tool-reports.ts";

/** What a hook is called with. */
export interface HookCall {
  readonly mission: string;
  readonly epoch: number;
  /** Undefined for an agent that a user declared; it reports plain events. */
  readonly adapter: Pick<Adapter, "hooks"> | undefined;
  /** The name of the event, where the CLI passes it as an argument. */
  readonly event: string | undefined;
  /** What the CLI passed as JSON. */
  readonly input: string;
}

export interface HookReply {
  readonly events: readonly HookEvent[];
  /** Printed for the agent's CLI: JSON, or nothing. */
  readonly stdout: string;
}

export function receiveHook(
  machine: Machine,
  config: Config,
  { mission, epoch, adapter, event, input }: HookCall,
): HookReply {
  const document = parseInput(input);
  const name = event ?? eventName(document);
  const current = readEpoch(config, mission);
  if (epoch !== 0 && epoch < current) return { events: [], stdout: "" };
  const events = (adapter?.hooks.parse ?? parsePlainEvent)(name, document);
  const directory = agentDirectory(config, mission);
  if (events.length > 0 && !existsSync(directory)) makeDirectory(machine.disk, directory);
  for (const each of events)
    appendHookLine(machine, directory, { at_ms: machine.clock.nowMs(), epoch, ...each });
  const session = events.findLast((each) => each.kind === "session");
  if (session !== undefined && epoch !== 0) noteSession(machine, config, directory, epoch, session.session);
  return { events, stdout: name === "SessionStart" ? takeNote(machine, directory) : "" };
}

/** For the script that reports tool calls, if this run has one. */
function noteSession(
  { disk }: Machine,
  { heartbeat_interval_seconds: seconds }: Config,
  directory: string,
  epoch: number,
  session: string,
): void {
  const { path, text } = reportedSession(directory, epoch, seconds, session);
  if (existsSync(dirname(path))) replaceFile(disk, path, text);
}

/** Renamed first: a note that is delivered twice would tell the model to check everything again. */
function takeNote({ disk }: Machine, directory: string): string {
  const file = resumeNoteFile(directory);
  if (!existsSync(file)) return "";
  const delivered = `${file}.delivered`;
  disk.rename(file, delivered);
  const additionalContext = readFileSync(delivered, "utf8");
  return JSON.stringify({ hookSpecificOutput: { hookEventName: "SessionStart", additionalContext } });
}

function parseInput(text: string): JsonObject {
  if (text.trim() === "") return {};
  const value: unknown = JSON.parse(text);
  return isJsonObject(value) ? value : {};
}
