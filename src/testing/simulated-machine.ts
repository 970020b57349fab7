// A machine from one seed: simulated time, ids and processes. The caller chooses the disk: code that reads through node:fs
// needs a real one, and only durable writes can be tested on a simulated one.
import type { Disk } from "../platform/disk.ts";
import type { Machine } from "../platform/machine.ts";
import { createSeededIds } from "./seeded-ids.ts";
import { createSimulatedClock, type SimulatedClock } from "./simulated-clock.ts";
import { createSimulatedProcesses, type SimulatedProcesses } from "./simulated-processes.ts";

/** A machine with simulated time, ids and processes. */
export interface SimulatedMachine extends Machine {
  readonly clock: SimulatedClock;
  readonly processes: SimulatedProcesses;
}

/** Disk, seed and start time of a simulated machine. */
export interface SimulatedMachineOptions {
  readonly disk: Disk;
  readonly seed?: number;
  readonly startMs?: number;
}

/** Creates a machine from a seed. */
export function createSimulatedMachine({
  disk,
  seed = 1,
  startMs,
}: SimulatedMachineOptions): SimulatedMachine {
  return {
    clock: createSimulatedClock(startMs),
    ids: createSeededIds(seed),
    disk,
    processes: createSimulatedProcesses(),
  };
}
