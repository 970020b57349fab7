// What an agent CLI left about its last life: the reports of its hooks, and its transcript. Read-only, so that `why`
// comes to the same result as the pit.
import type { Adapter, Place, Position, SessionFile, ToolCall } from "../../agents/adapter.ts";
import { readRows } from "../../agents/conversation/position.ts";
import { createSessionReader } from "../../agents/conversation/source.ts";
import { type HookSummary, readHookLines, summarizeHooks } from "../../agents/hook-lines.ts";
import { readPlace } from "../../agents/place.ts";
import { readSession } from "../../agents/session.ts";
import { agentPaths } from "../../cell/agent-paths.ts";
import { cellPaths } from "../../cell/layout.ts";
import { parseMissionId } from "../../cell/mission-id.ts";
import { quietly } from "../../platform/errors.ts";
import type { PitContext } from "../context.ts";
import type { MissionRecord } from "../record/record.ts";
import { type KnownAgent, knownAgent } from "./known-agent.ts";

export interface LifeReport {
  readonly agent: KnownAgent;
  readonly hooks: HookSummary;
  /** Null when neither a hook nor a transcript names it. */
  readonly session: string | null;
  /** Null when there is no transcript. */
  readonly position: Position | null;
}

/** Undefined for a life that was not started through an adapter. `log`: the end of its output. */
export function readLifeReport(
  context: Pick<PitContext, "config" | "adapters">,
  record: MissionRecord,
  log: readonly string[],
): LifeReport | undefined {
  const { life, mission } = record;
  const agent = life?.conversation === undefined ? undefined : knownAgent(context, record);
  if (life == null || agent === undefined) return undefined;
  const { directory } = agentPaths(context.config, mission);
  const lines = readHookLines(directory, life.epoch);
  const hooks = summarizeHooks(lines);
  const place = readPlace(directory);
  const { root } = cellPaths(context.config, parseMissionId(mission));
  const named = [hooks.session, readSession(root)?.session, ...sessionsInOutput(agent.adapter, log)];
  const known = named.find((id): id is string => id != null && agent.adapter.isSessionId(id));
  const session = known ?? (place && newestSession(agent.adapter, place, life.started_ms)) ?? null;
  const position =
    session === null || place === undefined ? null : readPosition(agent.adapter, place, session);
  return { agent, hooks, session, position };
}

function sessionsInOutput({ sessionInOutput }: Adapter, log: readonly string[]): (string | null)[] {
  return sessionInOutput === undefined ? [] : log.map(sessionInOutput);
}

/** The newest session of the agent's directory; undefined when there is none. */
export function newestSession(adapter: Adapter, place: Place, sinceMs: number): string | undefined {
  return adapter.findSessions(place, sinceMs, createSessionReader(adapter, place)).at(-1);
}

/** The position of a conversation; null when there is no transcript. */
export function readPosition(adapter: Adapter, place: Place, session: string): Position | null {
  const reader = createSessionReader(adapter, place);
  const files = adapter.sessionFiles(place, session, reader);
  const isDatabase = ({ kind }: SessionFile) => kind === "sqlite" || kind === "shared";
  const texts = files.map((file) => ({
    name: file.name,
    text: isDatabase(file)
      ? rowsOf(adapter, session, file)
      : (reader.head(file.path, Number.MAX_SAFE_INTEGER) ?? ""),
  }));
  if (files.length === 0 && adapter.filesAreUnknown) return adapter.transcript.position([]);
  // A database exists before the session is in it, and a file before its first line.
  if (texts.every(({ text }) => text === "")) return null;
  return adapter.transcript.position(texts);
}

/** A database that is damaged, or has the tables of another version, does not count. */
function rowsOf(adapter: Adapter, session: string, { path }: SessionFile): string {
  return quietly(() => readRows(adapter, session, path)) ?? "";
}

/** The agent reported in this life that it is done. The transcript alone does not prove it: it may be that of an earlier life. */
export function reportedFinished(
  { agent, hooks, position }: Pick<LifeReport, "agent" | "hooks" | "position">,
  turnBefore: number,
  exitCode: number | null,
): boolean {
  if (hooks.lastEventMs !== null && hooks.isFinished) return true;
  if (hooks.failure !== null || hooks.openCalls.length > 0) return false;
  // The transcript of such an agent does not show a call that is still running, so its hooks decide.
  if (!agent.adapter.exitZeroMeansFinished && (hooks.lastEventMs !== null || exitCode !== 0)) return false;
  return position?.isFinished === true && position.turn > turnBefore;
}

/**
 * Calls without an end according to the hooks, and those whose result is not in the transcript: one that the agent had not
 * written yet is lost to the model, which would repeat the call. Calls without ids are compared by what they do.
 */
export function callsInFlight({
  hooks: { openCalls, endedCall },
  position,
}: Pick<LifeReport, "hooks" | "position">): readonly ToolCall[] {
  const isSame = (a: ToolCall, b: ToolCall) =>
    a.id === null || b.id === null ? a.summary === b.summary : a.id === b.id;
  const unanswered = (position?.open ?? []).filter((call) => !openCalls.some((other) => isSame(call, other)));
  const last = position?.last ?? null;
  // A transcript that shows a later call also has this one.
  const isShown = last !== null && [endedCall, ...openCalls].some((call) => call && isSame(call, last));
  const isLost = endedCall !== null && endedCall.id === null && !isShown;
  return [...openCalls, ...unanswered, ...(isLost ? [endedCall] : [])];
}
