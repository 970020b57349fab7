// The locks of a mission (INV-4): kernel locks, released when their holder dies. Always taken in this order:
//
// 1. stop lock, shared: by a command that waits for the agent to end. Nothing is started or restored in the meantime, but other
//    stops, checkpoints and the pit's handling of the exit continue.
// 2. mission lock, exclusive: by start, revive, restore and undo until they are done, and by stop, pause and the handling of
//    an exit for what they write. Never held while waiting for an agent to end.
// 3. life lock (by the keeper, as long as it lives), then the vault's lock.
//
// A checkpoint takes only the vault's lock: it may run under a live agent, and a restore also holds that lock. A journal is
// written only under the mission lock, so a start that sees none starts in a complete cell.
import { closeSync, openSync } from "node:fs";
import { makeDirectory } from "../platform/durable.ts";
import { LazarusError, systemErrorCode } from "../platform/errors.ts";
import { acquireLock, type Lock } from "../platform/lock.ts";
import type { Machine } from "../platform/machine.ts";
import { posixSupport } from "../platform/posix.ts";
import { agentPaths } from "./agent-paths.ts";
import type { Config } from "./config.ts";
import { unknownMission } from "./known-missions.ts";
import type { MissionId } from "./mission-id.ts";

const LOCK_WAIT_MS = 120_000;
const POLL_MS = 25;
/** Another process holds the stop lock for less than this when it only tests it. */
const TEST_MS = 2;

/** For short changes: a stop may be waiting for the agent to end. */
export async function lockMission(
  machine: Machine,
  config: Config,
  mission: MissionId,
  purpose: string,
  waitMs = LOCK_WAIT_MS,
): Promise<Lock> {
  const paths = agentPaths(config, mission);
  makeDirectory(machine.disk, paths.directory);
  try {
    return await acquireLock(machine, paths.lock, { purpose, waitMs });
  } catch (error) {
    // The mission was deleted while this process waited.
    if (systemErrorCode(error) === "ENOENT") throw unknownMission(config, mission);
    throw error;
  }
}

/** For start, revive, restore and undo: waits until no stop is under way. */
export async function lockMissionAfterStop(
  machine: Machine,
  config: Config,
  mission: MissionId,
  purpose: string,
): Promise<Lock> {
  const { clock } = machine;
  const deadlineMs = clock.monotonicMs() + LOCK_WAIT_MS;
  for (;;) {
    const lock = await lockMission(machine, config, mission, purpose, deadlineMs - clock.monotonicMs());
    if (!isBeingStopped(config, mission)) return lock;
    lock[Symbol.dispose]();
    if (clock.monotonicMs() >= deadlineMs) {
      throw new LazarusError("LOCK_HELD", `${purpose}: its agent is still being stopped`, {
        hint: `lazarus stop ${mission} --grace 0, then run the same command again`,
      });
    }
    await clock.sleep(POLL_MS);
  }
}

/** Until it is disposed of, nothing of this mission is started or restored by others. */
export async function holdStopLock(
  machine: Machine,
  config: Config,
  mission: MissionId,
): Promise<Disposable> {
  const { directory, stopLock } = agentPaths(config, mission);
  makeDirectory(machine.disk, directory);
  const support = posixSupport();
  const fd = openSync(stopLock, "a+", 0o600);
  while (support.ok && !support.posix.tryLock(fd, "shared")) await machine.clock.sleep(TEST_MS);
  return { [Symbol.dispose]: () => closeSync(fd) };
}

function isBeingStopped(config: Config, mission: MissionId): boolean {
  const support = posixSupport();
  if (!support.ok) return false;
  let fd: number;
  try {
    fd = openSync(agentPaths(config, mission).stopLock, "r+");
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return false;
    throw error;
  }
  try {
    return !support.posix.tryLock(fd);
  } finally {
    closeSync(fd);
  }
}
