// Changes what the user granted a mission (INV-11): settings, resume command, environment. Applies to the next life; a decision
// that is still pending is made again with the new settings. Write order: environment, record.
import { existsSync } from "node:fs";
import { cellPaths } from "../cell/layout.ts";
import type { MissionId } from "../cell/mission-id.ts";
import { crashPoint } from "../platform/crash-point.ts";
import { quietly } from "../platform/errors.ts";
import type { PitContext } from "./context.ts";
import { createBareRecord } from "./record/bare-record.ts";
import { type Environment, readEnvironment, writeEnvironment } from "./record/environment.ts";
import { grant } from "./record/grant.ts";
import type { MissionRecord } from "./record/record.ts";
import { readRecord, writeRecord } from "./record/store.ts";
import { grantedValues } from "./settings.ts";
import { inheritable } from "./start/agent-environment.ts";
import { noAgent } from "./stop.ts";
import { wakePit } from "./supervise/wake-file.ts";

export interface ConsentChange {
  /** Settings of the pit by key; undefined: as configured. */
  readonly settings: Readonly<Record<string, unknown>>;
  /** Null: revivals use the start command. */
  readonly resumeCommand?: readonly string[] | null | undefined;
  /** Variables to add or replace. */
  readonly environment?: Environment | undefined;
}

export async function changeConsent(
  context: PitContext,
  mission: MissionId,
  { settings, resumeCommand, environment }: ConsentChange,
): Promise<MissionRecord> {
  const { machine, config, effective } = context;
  // Before the lock is taken, which would create the directory of an unknown mission.
  const known = readGranted(context, mission);
  // Both belong to a start command.
  if (known.life === null && (resumeCommand != null || environment !== undefined))
    throw noAgent(config, mission);
  using _ = await context.lockMission(mission, `settings of ${mission}`);
  let record = grant(readGranted(context, mission), settings, resumeCommand);
  // A wrong value is refused here, not when the agent dies.
  grantedValues(effective.document, effective.file, record);
  if (environment !== undefined) record = changeEnvironment(context, record, environment);
  crashPoint("pit.set.environment");
  writeRecord(machine, config, record);
  wakePit(machine, config, mission);
  return record;
}

/** What is granted now. A mission that has a cell can be granted something before its first agent starts. */
export function readGranted(context: PitContext, mission: MissionId): MissionRecord {
  const { machine, config } = context;
  const record = readRecord(config, mission);
  if (record !== undefined) return record;
  if (!existsSync(cellPaths(config, mission).root)) throw noAgent(config, mission);
  return createBareRecord(mission, "", machine.clock.nowMs());
}

function changeEnvironment(context: PitContext, record: MissionRecord, added: Environment): MissionRecord {
  const { machine, config } = context;
  if (record.environment === null) return { ...record, env: { ...record.env, ...added } };
  const merged = { ...readKept(context, record), ...added };
  writeEnvironment(machine, config, record.mission, merged);
  return { ...record, environment: Object.keys(merged).length };
}

/** A lost environment is replaced by that of the user who repairs it. */
function readKept({ config, environment }: PitContext, { mission }: MissionRecord): Environment {
  return quietly(() => readEnvironment(config, mission)) ?? inheritable(environment);
}
