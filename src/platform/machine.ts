// All sources of non-determinism in one injected value (INV-9): time, randomness, processes, durable writes. Production uses
// `systemMachine`; `lazarus/testing` provides simulated machines.
import { type Clock, systemClock } from "./clock.ts";
import { type Disk, systemDisk } from "./disk.ts";
import { type IdSource, systemIds } from "./ids.ts";
import { type Processes, systemProcesses } from "./process-identity.ts";

/** Clock, ids, disk and processes: everything that tests replace. */
export interface Machine {
  readonly clock: Clock;
  readonly ids: IdSource;
  readonly disk: Disk;
  readonly processes: Processes;
}

/** This machine. */
export const systemMachine: Machine = {
  clock: systemClock,
  ids: systemIds,
  disk: systemDisk,
  processes: systemProcesses,
};
