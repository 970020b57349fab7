// The pit: a kernel lock allows one per home. Runs the supervisor's ticks until its signal aborts. Agents keep running under
// their keepers, and the next pit adopts them.
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { LazarusError } from "../../platform/errors.ts";
import { type Lock, type LockOwner, readLockOwner, tryAcquireLock } from "../../platform/lock.ts";
import { keepReserve } from "../../platform/reserve.ts";
import { createServiceNotify } from "../../service/notify.ts";
import type { PitContext } from "../context.ts";
import type { LiveCheckpoints } from "../live/live-points.ts";
import { pitLockFile, RESERVE_BYTES, reserveFile } from "../paths.ts";
import { sweepCgroups } from "../processes/cgroup.ts";
import { listAgentMissions } from "../record/store.ts";
import { checkPitSettings } from "../settings.ts";
import { shutDown } from "./shut-down.ts";
import { closeSupervisor, createSupervisor, createTick, queueCheck, RESCAN_MS } from "./supervisor.ts";
import { watchWakeFiles } from "./wake-file.ts";

export interface Pit extends Disposable {
  /** Runs until the signal, then takes the shutdown checkpoints. Agents keep running. */
  run(signal: AbortSignal): Promise<void>;
  /** Takes checkpoints from the changes that were watched. */
  readonly live: LiveCheckpoints;
  /** How many agents it watches. */
  readonly watching: number;
}

const TICK_MS = 50;
const LOCK_WAIT_MS = 2000;
const LOCK_POLL_MS = 10;

export async function openPit(context: PitContext): Promise<Pit> {
  const { machine, config, effective } = context;
  const warnings = checkPitSettings(effective.document, effective.file);
  const lock = await acquirePitLock(context);
  const supervisor = createSupervisor(context);
  return {
    async run(signal) {
      const notify = createServiceNotify(context.environment, process.pid);
      using _ = watchWakeFiles(
        config,
        (mission) => queueCheck(supervisor, mission),
        (line) =>
          context.log(`changes made by commands are noticed up to ${RESCAN_MS / 1000} s later: ${line}`),
      );
      for (const mission of listAgentMissions(config)) queueCheck(supervisor, mission);
      sweepCgroups(machine.clock.nowMs());
      keepReserve(machine.disk, reserveFile(config), RESERVE_BYTES);
      notify.send("READY=1");
      for (const line of warnings) context.log(line);
      context.log(`pit started for ${config.missions_root} (process ${process.pid})`);
      const tick = createTick(supervisor, notify);
      while (!signal.aborted) {
        tick();
        await machine.clock.sleep(TICK_MS, signal);
      }
      notify.send("STOPPING=1");
      await shutDown(supervisor);
    },
    live: supervisor.live,
    get watching() {
      return supervisor.watchList.size;
    },
    [Symbol.dispose]() {
      closeSupervisor(supervisor);
      lock[Symbol.dispose]();
    },
  };
}

async function acquirePitLock({ machine, config }: PitContext): Promise<Lock> {
  const path = pitLockFile(config.run_dir);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const deadlineMs = machine.clock.monotonicMs() + LOCK_WAIT_MS;
  let owner: LockOwner | undefined;
  do {
    const lock = tryAcquireLock(machine, path, "pit");
    if (lock !== undefined) return lock;
    // Without a live owner, the holder is a pit that has not written its name yet, or a process that tests the lock.
    owner = readLockOwner(path);
    if (owner !== undefined && machine.processes.identify(owner.pid) !== undefined) break;
    await machine.clock.sleep(LOCK_POLL_MS);
  } while (machine.clock.monotonicMs() < deadlineMs);
  throw new LazarusError(
    "PIT_RUNNING",
    `a pit is already running for ${config.missions_root}${owner ? `: process ${owner.pid} on ${owner.host}` : ""}`,
    {
      hint: owner ? `ps -p ${owner.pid} -f` : "lazarus status",
      details: { owner: owner ?? null },
    },
  );
}
