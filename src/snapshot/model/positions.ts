// The positions of a cell's flows and runs, for the metadata of its checkpoint. Read from the cell's own files, never from
// a server.
import { readFlowPositions } from "../../flow/operations/positions.ts";
import { readRunPositions } from "../../run/stores/positions.ts";
import type { CheckpointMetadata } from "./entry.ts";

export function readPositions(cellRoot: string): Pick<CheckpointMetadata, "flows" | "runs"> {
  return { flows: readFlowPositions(cellRoot), runs: readRunPositions(cellRoot) };
}
