// Opens a mission's checkpoints for a command, with a progress bar when someone is watching.
import type { MissionId } from "../cell/mission-id.ts";
import { type MissionContext, openMissionContext } from "../snapshot/mission-context.ts";
import type { CliContext } from "./context.ts";
import { createProgressBar } from "./render/progress.ts";
import { VERSION } from "./version.ts";

export interface CliMission extends MissionContext, Disposable {
  /** Takes the progress bar off the screen. */
  endProgress(): void;
}

export function openCliMission(context: CliContext, mission: MissionId): CliMission {
  const bar = createProgressBar(context);
  const missionContext = openMissionContext(context.machine, context.config, mission, {
    version: VERSION,
    environment: context.surroundings.env,
    onProgress: (progress) => bar.show(progress),
  });
  return { ...missionContext, endProgress: () => bar.end(), [Symbol.dispose]: () => bar.end() };
}
