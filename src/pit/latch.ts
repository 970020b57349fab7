// Records what the user asked for: a latch that survives reboots (INV-8). Killing a process must not depend on disk space,
// so a full disk is handled here: the agent is frozen first, because it would take every byte that the reserve frees.
import { asLazarusError, type LazarusError } from "../platform/errors.ts";
import { isDiskFull } from "../platform/reserve.ts";
import type { PitContext } from "./context.ts";
import { identifyLife } from "./processes/members.ts";
import { pauseTree } from "./processes/pause.ts";
import { type DesiredState, type MissionRecord, setDesiredState } from "./record/record.ts";
import { writeRecord } from "./record/store.ts";

export interface Latched {
  readonly record: MissionRecord;
  /** Set when it could not be recorded, because the disk is full. The agent is frozen. */
  readonly unrecorded: LazarusError | undefined;
}

/** The caller holds the mission's lock. */
export async function latchDesiredState(
  context: PitContext,
  found: MissionRecord,
  state: DesiredState,
): Promise<Latched> {
  const { machine, config } = context;
  const record = setDesiredState(found, state, machine.clock.nowMs());
  const write = () => writeRecord(machine, config, record);
  try {
    write();
  } catch (error) {
    if (!isDiskFull(error)) throw error;
    await pauseTree(machine.clock, identifyLife(context, found));
    try {
      write();
    } catch (again) {
      return { record, unrecorded: asLazarusError(again, `recording the state of ${found.mission}`) };
    }
  }
  return { record, unrecorded: undefined };
}
