// The running agents that a pit watches: a process descriptor (pidfd) per keeper, so that one system call tells which have
// ended, and each agent's timers.
import { closeSync } from "node:fs";
import type { Life } from "../../cell/life.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { type Posix, posixSupport } from "../../platform/posix.ts";
import { isAlive, type Processes } from "../../platform/process-identity.ts";
import type { Clocks } from "./stall.ts";

export interface WatchedAgent {
  readonly mission: MissionId;
  readonly life: Life;
  readonly fd: number | undefined;
  clocks: Clocks | undefined;
  /** Monotonic. */
  stallCheckedMs: number;
  checkpointedMs: number;
}

export interface WatchList {
  get(mission: MissionId): WatchedAgent | undefined;
  all(): Iterable<WatchedAgent>;
  readonly size: number;
  /** False when the keeper has already ended. */
  add(mission: MissionId, life: Life, monotonicMs: number): boolean;
  remove(mission: MissionId): void;
  /** Missions whose keeper has ended. */
  ended(): MissionId[];
  clear(): void;
}

export function createWatchList(processes: Processes): WatchList {
  const list = new Map<MissionId, WatchedAgent>();
  const support = posixSupport();
  const posix: Posix | undefined = support.ok && process.platform === "linux" ? support.posix : undefined;
  const remove = (mission: MissionId) => {
    const fd = list.get(mission)?.fd;
    if (fd !== undefined) closeSync(fd);
    list.delete(mission);
  };
  return {
    get: (mission) => list.get(mission),
    all: () => list.values(),
    get size() {
      return list.size;
    },
    add(mission, life, monotonicMs) {
      const known = list.get(mission);
      if (known?.life.epoch === life.epoch) return true;
      if (known !== undefined) remove(mission);
      // Open the descriptor before checking the identity: the pid may be reused in between.
      const fd = posix?.openProcess(life.keeper.pid);
      if (!isAlive(processes, life.keeper)) {
        if (fd !== undefined) closeSync(fd);
        return false;
      }
      list.set(mission, {
        mission,
        life,
        fd,
        clocks: undefined,
        stallCheckedMs: monotonicMs,
        checkpointedMs: monotonicMs,
      });
      return true;
    },
    remove,
    ended() {
      const all = [...list.values()];
      if (posix === undefined)
        return all.filter(({ life }) => !isAlive(processes, life.keeper)).map(({ mission }) => mission);
      const gone = new Set(posix.endedProcesses(all.map(({ fd }) => fd!)));
      return all.filter(({ fd }) => gone.has(fd!)).map(({ mission }) => mission);
    },
    clear() {
      for (const mission of [...list.keys()]) remove(mission);
    },
  };
}
