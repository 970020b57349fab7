// One session, one agent (INV-4): two processes that resume the same conversation interleave their turns in one file. A
// session is claimed before its agent starts, unless another mission or a process that Lazarus did not start has it.
import { readdirSync, realpathSync } from "node:fs";
import { join } from "node:path";
import type { Adapter } from "../../agents/adapter.ts";
import { findClaimant, claimSession as recordClaim } from "../../agents/conversation/discover.ts";
import { isAgentProcess, readArguments } from "../../agents/nested.ts";
import { readSession, type Session, writeSession } from "../../agents/session.ts";
import type { Config } from "../../cell/config.ts";
import { cellPaths } from "../../cell/layout.ts";
import { isKeeperAlive, readLife } from "../../cell/life.ts";
import { type MissionId, parseMissionId } from "../../cell/mission-id.ts";
import { LazarusError, quietly } from "../../platform/errors.ts";
import { acquireLock } from "../../platform/lock.ts";
import type { PitContext } from "../context.ts";
import type { MissionRecord } from "../record/record.ts";

/** Who else has a session. */
export interface SessionUser {
  readonly pid: number | null;
  /** For people: "mission book (process 12)", "process 12 (claude --resume …)". */
  readonly who: string;
}

const LOCK_WAIT_MS = 10_000;

/** Throws when another mission or process has the session. Durable when it returns. The caller holds the mission's life lock. */
export async function claimSession(
  context: PitContext,
  mission: MissionId,
  adapter: Adapter,
  session: Session,
): Promise<void> {
  const { machine, config } = context;
  const cell = context.openMission(mission);
  // Claim and session.json make one step: a claim counts only if its mission's session.json names the session.
  using _ = await acquireLock(machine, join(config.run_dir, "sessions.lock"), {
    purpose: `session of ${mission}`,
    waitMs: LOCK_WAIT_MS,
  });
  if (session.session !== null) {
    const user = findSessionUser(context, mission, adapter, session.session);
    if (user !== undefined) throw sessionInUse(session.session, user);
    recordClaim(cell, adapter, session.session);
  }
  writeSession(machine, cell.cellRoot, session);
}

export function sessionInUse(session: string, { pid, who }: SessionUser): LazarusError {
  return new LazarusError("SESSION_IN_USE", `session ${session} is in use by ${who}`, {
    hint: "continue it there, or start without --resume to begin a new conversation",
    details: { session, pid },
  });
}

/** Undefined when no other user of the session is known. */
export function findSessionUser(
  context: PitContext,
  mission: MissionId,
  adapter: Adapter,
  session: string,
): SessionUser | undefined {
  const owner = findSessionOwner(context, mission, adapter, session);
  const { machine, config } = context;
  if (owner === undefined) return findProcess(adapter, session, cellPaths(config, mission).worktree);
  const isAlive = isKeeperAlive(machine.processes, config, owner);
  const pid = (isAlive ? readLife(config, owner)?.agent.pid : undefined) ?? null;
  return { pid, who: `mission ${owner}${pid === null ? "" : ` (process ${pid})`}` };
}

/** The other mission that this conversation belongs to. A fork has a copy of it that is not its own. */
export function findSessionOwner(
  context: PitContext,
  mission: MissionId,
  adapter: Adapter,
  session: string,
): string | undefined {
  return findClaimant(context.openMission(mission), adapter, session);
}

/** The session in the cell, which a restore may have changed, unless it is that of a life that was never recorded. */
export function currentSession(
  config: Config,
  { mission, life }: MissionRecord,
  adapter: Adapter,
): string | null {
  const stored = readSession(cellPaths(config, parseMissionId(mission)).root);
  const isOurs = stored?.adapter === adapter.name && stored.since_epoch <= (life?.epoch ?? 0);
  const session = (isOurs ? stored.session : null) ?? life?.conversation?.session ?? null;
  return session !== null && adapter.isSessionId(session) ? session : null;
}

const COMMAND_SHOWN = 80;

/**
 * A process of this agent whose arguments name the session, or, if it has overwritten them, one in the same directory.
 * Undefined where there is no /proc.
 */
export function findProcess(adapter: Adapter, session: string, directory: string): SessionUser | undefined {
  if (process.platform !== "linux") return undefined;
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!(pid > 0) || pid === process.pid) continue;
    const words = readArguments(pid);
    // A Lazarus command sets the agent later.
    if (!isAgentProcess(words, adapter)) continue;
    const isNamed = words.some((word) => word === session || word.endsWith(`=${session}`));
    if (!isNamed && !(couldHideSession(words, session) && worksIn(pid, directory))) continue;
    return { pid, who: `process ${pid} (${words.join(" ").trim().slice(0, COMMAND_SHOWN)})` };
  }
  return undefined;
}

/**
 * Pure. Whether a process has overwritten its arguments with a title, as Pi does, and they had room for the session: the
 * title is followed by zeros up to the former length.
 */
export function couldHideSession([, ...rest]: readonly string[], session: string): boolean {
  return rest.length > session.length && rest.every((word) => word === "");
}

function worksIn(pid: number, directory: string): boolean {
  // It may have ended or belong to another user, and one of the directories may be gone.
  return quietly(() => realpathSync(`/proc/${pid}/cwd`) === realpathSync(directory)) ?? false;
}
