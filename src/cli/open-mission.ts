// Opens a mission's checkpoints for a command, with a progress bar when someone is watching.
import type { MissionId } from "../cell/mission-id.ts";
import { openRoom, type Room } from "../snapshot/mission-context.ts";
import type { CliContext } from "./context.ts";
import { createProgressBar } from "./render/progress.ts";
import { VERSION } from "./version.ts";

export interface CliRoom extends Room, Disposable {
  /** Takes the progress bar off the screen. */
  endProgress(): void;
}

export function openCliRoom(context: CliContext, mission: MissionId): CliRoom {
  const bar = createProgressBar(context);
  const room = openRoom(context.machine, context.config, mission, {
    version: VERSION,
    environment: context.surroundings.env,
    onProgress: (progress) => bar.show(progress),
  });
  return { ...room, endProgress: () => bar.end(), [Symbol.dispose]: () => bar.end() };
}
