// One session, one agent (INV-4): two processes that resume the same conversation interleave their turns in one file. A
// session is claimed under a lock by writing session.json, after looking for whoever has it: an agent of another mission,
// or a process that Lazarus did not start.
import { readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { Adapter } from "../../agents/adapter.ts";
import { readSession, type Session, writeSession } from "../../agents/session.ts";
import type { Config } from "../../cell/config.ts";
import { cellPaths } from "../../cell/layout.ts";
import { isKeeperAlive, readLife } from "../../cell/life.ts";
import { type MissionId, parseMissionId } from "../../cell/mission-id.ts";
import { LazarusError } from "../../platform/errors.ts";
import { acquireLock } from "../../platform/lock.ts";
import type { ReadContext } from "../context.ts";
import type { MissionRecord } from "../record/record.ts";
import { listAgentMissions } from "../record/store.ts";

/** Who else has a session. */
export interface SessionUser {
  readonly pid: number | null;
  /** For people: "the agent of book (process 12)", "process 12 (claude --resume …)". */
  readonly who: string;
}

const LOCK_WAIT_MS = 10_000;

/** Throws when somebody else has the session. Durable when it returns. The caller holds the mission's life lock. */
export async function claimSession(
  context: ReadContext,
  mission: MissionId,
  adapter: Adapter,
  session: Session,
): Promise<void> {
  const { machine, config } = context;
  using _ = await acquireLock(machine, join(config.run_dir, "sessions.lock"), {
    purpose: `session of ${mission}`,
    waitMs: LOCK_WAIT_MS,
  });
  if (session.session !== null) {
    const user = findSessionUser(context, mission, adapter, session.session);
    if (user !== undefined) throw sessionInUse(session.session, user);
  }
  writeSession(machine, cellPaths(config, mission).root, session);
}

export function sessionInUse(session: string, { pid, who }: SessionUser): LazarusError {
  return new LazarusError("SESSION_IN_USE", `session ${session} is in use by ${who}`, {
    hint: "end it first, or start without --resume to begin a new conversation",
    details: { session, pid },
  });
}

/** Undefined when nobody is known to have it. */
export function findSessionUser(
  context: ReadContext,
  mission: string,
  adapter: Adapter,
  session: string,
): SessionUser | undefined {
  return findMission(context, mission, adapter, session) ?? findProcess(adapter, session);
}

function findMission(
  { machine, config }: ReadContext,
  mission: string,
  { name }: Adapter,
  session: string,
): SessionUser | undefined {
  for (const other of listAgentMissions(config)) {
    if (other === mission) continue;
    const known = readSession(cellPaths(config, other).root);
    if (known?.adapter !== name || known.session !== session) continue;
    if (!isKeeperAlive(machine.processes, config, other)) continue;
    const pid = readLife(config, other)?.agent.pid ?? null;
    return { pid, who: `the agent of ${other}${pid === null ? "" : ` (process ${pid})`}` };
  }
  return undefined;
}

/** What the cell says, which a restore may have changed, unless that is of a life that was never recorded. */
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

/** A process of this agent whose arguments name the session. Undefined where there is no /proc. */
function findProcess({ programs, packages }: Adapter, session: string): SessionUser | undefined {
  if (process.platform !== "linux") return undefined;
  const isAgent = (word: string) =>
    programs.includes(basename(word)) || packages.some((name) => word.includes(`/node_modules/${name}/`));
  for (const name of readdirSync("/proc")) {
    const pid = Number(name);
    if (!(pid > 0) || pid === process.pid) continue;
    const words = readArguments(pid);
    // The program, or the script of an interpreter; a command of ours names the agent later.
    if (!words.slice(0, 2).some(isAgent)) continue;
    if (!words.some((word) => word === session || word.endsWith(`=${session}`))) continue;
    return { pid, who: `process ${pid} (${words.join(" ").slice(0, COMMAND_SHOWN)})` };
  }
  return undefined;
}

function readArguments(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return [];
  }
}
