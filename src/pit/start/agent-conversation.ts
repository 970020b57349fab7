// Starts, resumes or restarts the conversation of an agent CLI: which session, which arguments, which hooks. The session is
// on disk before the record names the life, and both before the agent runs: after a kill in between, the next life finds a
// session without a transcript and starts over (INV-4). The user's command is kept as it was typed; nothing that an agent can
// write becomes an option or a program (INV-11).
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Place, Position } from "../../agents/adapter.ts";
import { NO_HOOKS } from "../../agents/claude-style-hooks.ts";
import { copyDatabaseWithout } from "../../agents/conversation/copy-database.ts";
import {
  currentSession as currentSessionName,
  isBehind,
  putBackConversation,
} from "../../agents/conversation/put-back.ts";
import { trustLinks } from "../../agents/conversation/trust-links.ts";
import { readPlace, writePlace } from "../../agents/place.ts";
import { readSession, resumeNoteFile, unsentNoteFile } from "../../agents/session.ts";
import { agentPaths } from "../../cell/agent-paths.ts";
import { cellPaths } from "../../cell/layout.ts";
import { type MissionId, parseMissionId, refuseOutside } from "../../cell/mission-id.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { makeDirectory, removeFile, replaceFile } from "../../platform/durable.ts";
import { type IdSource, randomUuid, timeOrderedId } from "../../platform/ids.ts";
import type { PitContext } from "../context.ts";
import { commandWith, type KnownAgent, knownAgent, placeOf } from "../conversation/known-agent.ts";
import { newestSession, readPosition } from "../conversation/life-report.ts";
import { claimSession, currentSession, findSessionOwner } from "../conversation/session-claim.ts";
import type { LifeConversation } from "../record/conversation.ts";
import type { MissionRecord } from "../record/record.ts";
import type { Prepared } from "./start-agent.ts";

export type AgentEnvironment = Readonly<Record<string, string>>;

/** The first life of a command: as typed, with its own session and our hooks. */
export async function startConversation(
  context: PitContext,
  record: MissionRecord,
  epoch: number,
  environment: AgentEnvironment,
): Promise<Prepared> {
  const agent = knownAgent(context, record);
  if (agent === undefined) return { command: record.command };
  // That of an earlier life which ended before it was read.
  deliverByHook(context, parseMissionId(record.mission), undefined);
  const { adapter, line } = agent;
  const { place: plain, added } = placeOf(context, record, agent, environment);
  prepareState(context, record, agent, environment);
  // What leads to its conversations now was made by the user.
  const listed = trustLinks(adapter, plain, null);
  const copied = await continueCopy(context, record, { agent, place: listed, added }, epoch);
  if (copied !== undefined) return copied;
  const session = firstSession(agent, listed, context.machine.ids);
  const place = session === null ? listed : trustLinks(adapter, plain, session);
  await claim(context, record, agent, session, epoch);
  // A session that the user continues already has turns.
  const before = session === null ? null : readPosition(adapter, place, session);
  return {
    ...withHooks(context, record, { agent, place, added }, adapter.start(line.args, session), {
      session,
      how: "start",
      turn: before?.turn ?? 0,
    }),
  };
}

/** The directory for the agent's own state, and a copy of the user's database in it for a session that is in there. */
function prepareState(
  { machine, config }: PitContext,
  record: MissionRecord,
  { adapter, invocation }: KnownAgent,
  environment: AgentEnvironment,
): void {
  if (adapter.env === undefined) return;
  const cell = cellPaths(config, parseMissionId(record.mission));
  const directory = join(cell.root, "state", adapter.name);
  makeDirectory(machine.disk, directory);
  refuseOutside(cell.root, directory);
  if (adapter.seed === undefined || invocation.session === null) return;
  const place = { cwd: record.cwd ?? cell.worktree, home: environment.HOME ?? "/", env: environment };
  const { from, to, secrets } = adapter.seed(place, directory);
  if (!existsSync(to)) copyDatabaseWithout(machine, from, to, secrets);
}

/** A fork or an import comes with its own conversation, which the first life continues. */
async function continueCopy(
  context: PitContext,
  record: MissionRecord,
  started: Pick<ResumePlan, "agent" | "place" | "added">,
  epoch: number,
): Promise<Prepared | undefined> {
  const { agent, place } = started;
  const { adapter, line, invocation } = agent;
  const { machine, config } = context;
  const stored = readSession(cellPaths(config, parseMissionId(record.mission)).root);
  const session = stored?.adapter === adapter.name && stored.since_epoch === 0 ? stored.session : null;
  if (session === null || !adapter.isSessionId(session) || invocation.session !== null) return undefined;
  writePlace(machine, agentPaths(config, record.mission).directory, place);
  putBackIfLost(context, record, null);
  const position = readPosition(adapter, place, session);
  const where = `This is a copy of the conversation and of its files, in the mission ${record.mission}; you work in ${place.cwd} now.`;
  const prompt = invocation.prompt === null ? where : `${where}\n\n${invocation.prompt}`;
  const args = position === null ? null : adapter.resume(line.args, session, prompt);
  if (args === null) return undefined;
  await claim(context, record, agent, session, epoch);
  if (withoutPrompt(agent) === "hook") deliverByHook(context, parseMissionId(record.mission), prompt);
  return {
    ...withHooks(context, record, started, args, { session, how: "resume", turn: position?.turn ?? 0 }),
    note: `continued the conversation that the mission was created with, at turn ${position?.turn ?? 0}`,
  };
}

/** The session that the user chose, or else a new one where the agent takes an id; null where it chooses its own. */
function firstSession({ adapter, invocation }: KnownAgent, place: Place, ids: IdSource): string | null {
  const { session } = invocation;
  if (session === "newest") return newestSession(adapter, place, 0) ?? null;
  if (session !== null) return session.id;
  return adapter.sessionIds === "chosen" ? randomUuid(ids) : null;
}

export interface ResumePlan {
  readonly agent: KnownAgent;
  readonly place: Place;
  readonly added: AgentEnvironment;
  readonly session: string | null;
  readonly position: Position | null;
  /** The agent's files lacked it, or a part of it. */
  readonly isPutBack: boolean;
  /** Why the conversation cannot be continued; null when it can. */
  readonly problem: string | null;
}

/** How the next life gets its conversation. Undefined without an adapter. */
export function planResume(
  context: PitContext,
  record: MissionRecord,
  environment: AgentEnvironment,
): ResumePlan | undefined {
  const agent = knownAgent(context, record);
  if (agent === undefined) return undefined;
  const { place: plain, added } = placeOf(context, record, agent, environment);
  const links = readPlace(agentPaths(context.config, record.mission).directory)?.links;
  const place = links === undefined ? plain : { ...plain, links };
  const session = currentSession(context.config, record, agent.adapter);
  const read = () => (session === null ? null : readPosition(agent.adapter, place, session));
  const found = read();
  const isPutBack = putBackIfLost(context, record, found);
  const position = isPutBack ? read() : found;
  const owner =
    session === null
      ? undefined
      : findSessionOwner(context, parseMissionId(record.mission), agent.adapter, session);
  const problem =
    owner === undefined
      ? findProblem(record, agent, session, position)
      : `its session ${session} belongs to the mission ${owner}`;
  return { agent, place, added, session, position, isPutBack, problem };
}

/**
 * The agent's own transcript was deleted or has lost turns, or the cell is on another machine now: the copy in the cell takes
 * its place.
 */
function putBackIfLost(context: PitContext, { mission }: MissionRecord, live: Position | null): boolean {
  const cell = context.openMission(parseMissionId(mission));
  if (!isBehind(cell, live)) return false;
  const id = timeOrderedId(context.machine.clock.nowMs(), context.machine.ids);
  const problems = putBackConversation(cell, { before: currentSessionName(cell), id, isSaved: false });
  context.log(`${mission}: put the conversation back from its copy in the cell`);
  for (const { path, reason } of problems) context.log(`${mission}: ${path}: ${reason}`);
  return true;
}

function findProblem(
  { end }: MissionRecord,
  { adapter, line }: KnownAgent,
  session: string | null,
  position: Position | null,
): string | null {
  if (session === null) return "its session is unknown";
  if (end?.evidence.some(({ kind }) => kind === "unknown-session"))
    return `${adapter.name} does not have the session ${session}`;
  if (position === null) return `there is no transcript of the session ${session}`;
  if (adapter.resume(line.args, session, "") === null) return "its command line cannot be resumed";
  return null;
}

/** The life after a death: resumes the conversation, or starts over, with the note as the prompt. */
export async function continueConversation(
  context: PitContext,
  record: MissionRecord,
  plan: ResumePlan,
  note: string,
  epoch: number,
): Promise<Prepared> {
  const { agent, position, problem } = plan;
  const { adapter, line } = agent;
  const resumed = problem === null ? adapter.resume(line.args, plan.session!, note) : null;
  // An id that was used before is refused by some agents, even if there is no transcript.
  const fresh = adapter.sessionIds === "chosen" ? randomUuid(context.machine.ids) : null;
  const session = resumed === null ? fresh : plan.session;
  await claim(context, record, agent, session, epoch);
  const args = resumed ?? adapter.restart(line.args, session, note);
  if (resumed !== null && withoutPrompt(agent) === "hook")
    deliverByHook(context, parseMissionId(record.mission), note);
  return {
    ...withHooks(context, record, plan, args, {
      session,
      how: resumed === null ? "restart" : "resume",
      turn: resumed === null ? 0 : (position?.turn ?? 0),
    }),
    note:
      resumed === null
        ? `started over with a new conversation of ${adapter.name}: ${problem ?? "it cannot be resumed"}`
        : `resumed the conversation of ${adapter.name} at turn ${position?.turn ?? 0} (session ${session})${
            plan.isPutBack ? ", which was damaged or gone and was put back from its copy" : ""
          }`,
  };
}

/** How a resumed agent gets the note, if not as its prompt. */
function withoutPrompt({ adapter, line }: KnownAgent): "hook" | "user" | null {
  return adapter.noteDelivery?.(line.args) ?? null;
}

/** Undefined: nothing is to be delivered, and what an earlier life left is removed. */
export function deliverByHook(
  { machine, config }: PitContext,
  mission: MissionId,
  note: string | undefined,
): void {
  const { directory } = agentPaths(config, mission);
  const file = resumeNoteFile(directory);
  removeFile(machine.disk, unsentNoteFile(directory));
  if (note === undefined) removeFile(machine.disk, file);
  else replaceFile(machine.disk, file, note);
}

/** A session that continues keeps its start time, so that its transcript is found. */
async function claim(
  context: PitContext,
  record: MissionRecord,
  { adapter }: KnownAgent,
  session: string | null,
  epoch: number,
): Promise<void> {
  const mission = parseMissionId(record.mission);
  const stored = readSession(cellPaths(context.config, mission).root);
  const isSame = session !== null && stored?.adapter === adapter.name && stored.session === session;
  await claimSession(context, mission, adapter, {
    format: 1,
    adapter: adapter.name,
    session,
    since_epoch: isSame ? Math.min(stored.since_epoch, epoch) : epoch,
    since_ms: isSame ? stored.since_ms : context.machine.clock.nowMs(),
  });
  crashPoint("pit.start.session");
}

/** Writes what the agent's hooks need, and where its conversation is. */
function withHooks(
  { machine, config, program }: PitContext,
  { mission, mcp }: Pick<MissionRecord, "mission" | "mcp">,
  { agent, place, added }: Pick<ResumePlan, "agent" | "place" | "added">,
  args: readonly string[],
  begun: Omit<LifeConversation, "adapter" | "hooks" | "waits">,
): Pick<Prepared, "command" | "env" | "conversation"> {
  const resumed = begun.how === "resume" ? (begun.session ?? undefined) : undefined;
  const waits = resumed !== undefined && withoutPrompt(agent) === "user";
  const conversation = { adapter: agent.adapter.name, ...begun, ...(waits && { waits }) };
  const { directory } = agentPaths(config, mission as MissionId);
  writePlace(machine, directory, place);
  // A restore may have removed it.
  if (agent.adapter.env !== undefined)
    makeDirectory(
      machine.disk,
      join(cellPaths(config, parseMissionId(mission)).root, "state", agent.adapter.name),
    );
  if (program === undefined) return { command: commandWith(agent, args), env: added, conversation };
  const { perRun } = agent.adapter.hooks;
  const hooks = join(directory, "hooks");
  const setup = perRun?.([...program, "hook", agent.adapter.name], hooks, place.env, resumed) ?? NO_HOOKS;
  for (const { name, text } of setup.files) {
    makeDirectory(machine.disk, dirname(join(hooks, name)));
    replaceFile(machine.disk, join(hooks, name), text);
  }
  // Hooks that the user has installed as well stay silent, if this run passes any.
  const isPassed = setup.args.length > 0 || Object.keys(setup.env).length > 0;
  const tools = mcp && agent.adapter.mcp?.([...program, "mcp"], { ...place.env, ...setup.env });
  const env = {
    ...added,
    ...setup.env,
    ...(isPassed ? { LAZARUS_HOOKS: "run" } : setup.installedEnv),
    ...tools?.env,
  };
  return {
    command: commandWith(agent, setup.args, tools?.args ?? [], args),
    env,
    conversation: { ...conversation, ...(isPassed && { hooks: true }) },
  };
}
