// A process table that a test edits: start, end, reuse a pid, reboot (INV-9). Start times restart at every boot, so only
// the boot id distinguishes processes of two boots.
import type { Processes, ProcessIdentity } from "../platform/process-identity.ts";

/** A process table that a test edits. */
export interface SimulatedProcesses extends Processes {
  /** Starts a process, default with the next free pid; throws when the pid is taken. */
  start(pid?: number): ProcessIdentity;
  /** Ends a process; throws when there is none with this pid. */
  end(pid: number): void;
  /** Ends the process with this pid and starts another one with it. */
  reuse(pid: number): ProcessIdentity;
  /** Ends all processes and reboots. The process that runs this code restarts with its old pid. */
  reboot(): void;
}

/** Pid and host name of the simulated process. */
export interface SimulatedProcessesOptions {
  readonly selfPid?: number;
  readonly hostName?: string;
}

const FIRST_FREE_PID = 2000;

/** Creates a process table with this process in it. */
export function createSimulatedProcesses(options: SimulatedProcessesOptions = {}): SimulatedProcesses {
  const { selfPid = 1000, hostName = "simulated-host" } = options;
  const table = new Map<number, ProcessIdentity>();
  let boots = 0;
  let ticks = 0;
  let nextPid = FIRST_FREE_PID;

  const bootId = () => `00000000-0000-4000-8000-${String(boots).padStart(12, "0")}`;
  const add = (pid: number): ProcessIdentity => {
    ticks += 1;
    const identity = { pid, startTime: String(ticks), bootId: bootId() };
    table.set(pid, identity);
    return identity;
  };
  const remove = (pid: number) => {
    if (!table.delete(pid)) throw new Error(`no simulated process has pid ${pid}`);
  };
  const reboot = () => {
    table.clear();
    boots += 1;
    ticks = 0;
    nextPid = FIRST_FREE_PID;
    add(selfPid);
  };
  reboot();

  return {
    self() {
      const identity = table.get(selfPid);
      if (identity === undefined) throw new Error("the simulated process that runs this code has ended");
      return identity;
    },
    identify: (pid) => table.get(pid),
    bootId,
    hostName: () => hostName,
    start(pid) {
      if (pid === undefined) {
        while (table.has(nextPid)) nextPid += 1;
        return add(nextPid++);
      }
      if (table.has(pid)) throw new Error(`pid ${pid} is taken: use reuse(${pid})`);
      return add(pid);
    },
    end: remove,
    reuse(pid) {
      remove(pid);
      return add(pid);
    },
    reboot,
  };
}
