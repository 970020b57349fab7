// The positions of a cell's flows and runs, for the metadata of its checkpoint. Read from the cell's own files, never from
// a server.
import { readFlowPositions } from "../../flow/operations/positions.ts";
import { readRunPositions } from "../../run/store/positions.ts";
import { diskPath, rootOf, type TreeRoot, WORKTREE } from "./cell-tree.ts";
import type { CheckpointMetadata } from "./entry.ts";

export function readPositions(tree: TreeRoot): Pick<CheckpointMetadata, "flows" | "runs"> {
  const root = rootOf(tree);
  return { flows: readFlowPositions(root, diskPath(tree, WORKTREE)), runs: readRunPositions(root) };
}
