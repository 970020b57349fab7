// The running agents that a pit watches: process descriptors (pidfd) of keeper and agent, so that one system call tells
// which have ended, and each agent's timers.
import type { Life } from "../../cell/life.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import type { ProcessSet } from "../../platform/libc/process-set.ts";
import { posixSupport } from "../../platform/posix.ts";
import { isAlive, type Processes } from "../../platform/process-identity.ts";
import type { Clocks } from "./stall.ts";

export interface WatchedAgent {
  readonly mission: MissionId;
  readonly life: Life;
  readonly fd: number | undefined;
  /** Pidfd of the agent; undefined when it has exited or where there are no pidfds. */
  readonly agentFd: number | undefined;
  /** Monotonic: when the agent was seen to have exited while its keeper had not. */
  exitedMs: number | undefined;
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
  /** Missions whose keeper has ended. Notes which agents have exited. */
  ended(monotonicMs: number): MissionId[];
  clear(): void;
}

export function createWatchList(processes: Processes): WatchList {
  const list = new Map<MissionId, WatchedAgent>();
  const support = posixSupport();
  const posix = support.ok && process.platform === "linux" ? support.posix : undefined;
  // Opened with the first agent: most programs that load this watch none.
  let processSet: ProcessSet | undefined;
  const open = (pid: number) => {
    processSet ??= posix?.openProcessSet();
    return processSet?.add(pid);
  };
  const close = (fd: number | undefined) => {
    if (fd !== undefined) processSet?.remove(fd);
  };
  const remove = (mission: MissionId) => {
    const { fd, agentFd } = list.get(mission) ?? {};
    close(fd);
    close(agentFd);
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
      const fd = open(life.keeper.pid);
      if (!isAlive(processes, life.keeper)) {
        close(fd);
        return false;
      }
      let agentFd = open(life.agent.pid);
      const hasExited = posix !== undefined && !isAlive(processes, life.agent);
      if (hasExited) {
        close(agentFd);
        agentFd = undefined;
      }
      list.set(mission, {
        mission,
        life,
        fd,
        agentFd,
        exitedMs: hasExited ? monotonicMs : undefined,
        clocks: undefined,
        stallCheckedMs: monotonicMs,
        checkpointedMs: monotonicMs,
      });
      return true;
    },
    remove,
    ended(monotonicMs) {
      if (posix === undefined)
        return [...list.values()]
          .filter(({ life }) => !isAlive(processes, life.keeper))
          .map(({ mission }) => mission);
      const gone = new Set(processSet?.ended());
      if (gone.size === 0) return [];
      const all = [...list.values()];
      for (const agent of all)
        if (agent.agentFd !== undefined && gone.has(agent.agentFd)) agent.exitedMs ??= monotonicMs;
      return all.filter(({ fd }) => gone.has(fd!)).map(({ mission }) => mission);
    },
    clear() {
      for (const mission of [...list.keys()]) remove(mission);
      processSet?.[Symbol.dispose]();
      processSet = undefined;
    },
  };
}
