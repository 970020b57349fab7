// Where the flows of a cell stand, for its checkpoints: which step each one is at, and whether its file is whole. Cheap,
// bounded, and never throwing, since a checkpoint must not fail over a stranger's file. `describeFlowMove` says in a
// sentence what a restore does to each flow.
import { join, relative } from "node:path";
import type { FlowDocument, FlowStatus } from "../document/document.ts";
import { readFlow } from "../document/read.ts";
import { type FlowPlace, listDirectories, listStems, placeOf } from "../document/workspace.ts";
import { listRecords } from "../once/record.ts";

export interface FlowPosition {
  /** Relative to the cell's root. */
  readonly file: string;
  readonly workflowId: string;
  readonly agentId: string;
  readonly status: FlowStatus | "invalid";
  readonly currentStep: string;
  /** How many. */
  readonly completedSteps: number;
  readonly updatedAt: string;
  /** Null when the file carries no hash. */
  readonly hashOk: boolean | null;
  /** How many at-most-once commands have a record; absent for none. */
  readonly onceRecords?: number;
}

/** A cell's flows lie in its worktree; some tools keep them beside it. */
const PLACES = ["worktree", ".", "state"] as const;
const MOST_FLOWS = 1000;
const MOST_TEXT = 200;

/** The flows of a cell, or of a plain directory; at most 1,000. Never throws. */
export function readFlowPositions(root: string): FlowPosition[] {
  const positions: FlowPosition[] = [];
  for (const place of PLACES) {
    for (const directory of quietly(() => listDirectories(join(root, place)))) {
      for (const stem of quietly(() => listStems(directory))) {
        if (positions.length >= MOST_FLOWS) return positions;
        const flow = placeOf(directory, stem);
        const reading = readFlow(flow);
        if (reading.state === "absent") continue;
        const file = relative(root, flow.file);
        positions.push(
          reading.state === "ok" ? healthy(file, flow, reading.document) : invalid(file, stem, reading.why),
        );
      }
    }
  }
  return positions;
}

function healthy(file: string, place: FlowPlace, document: FlowDocument): FlowPosition {
  const onceRecords = listRecords(place).length;
  const { workflowId, agentId, status, currentStep, completedSteps, updatedAt, checkpointHash } = document;
  return {
    file,
    workflowId: cut(workflowId),
    agentId: cut(agentId),
    status,
    currentStep: cut(currentStep),
    completedSteps: completedSteps.length,
    updatedAt,
    hashOk: checkpointHash === undefined ? null : true,
    ...(onceRecords > 0 ? { onceRecords } : {}),
  };
}

function invalid(file: string, stem: string, why: string): FlowPosition {
  return {
    file,
    workflowId: cut(stem),
    agentId: "",
    status: "invalid",
    currentStep: "",
    completedSteps: 0,
    updatedAt: "",
    hashOk: why === "hash" ? false : null,
  };
}

/**
 * What a restore does to the flows, a sentence each, in order of file; empty when nothing moves. `before` is where
 * they stand now, `after` where the checkpoint has them. Texts come from files: print them through `harmless`.
 */
export function describeFlowMove(before: readonly FlowPosition[], after: readonly FlowPosition[]): string[] {
  const now = new Map(before.map((position) => [position.file, position]));
  const then = new Map(after.map((position) => [position.file, position]));
  const files = [...new Set([...now.keys(), ...then.keys()])].sort();
  return files.flatMap((file) => describeMove(now.get(file), then.get(file)) || []);
}

function describeMove(from: FlowPosition | undefined, to: FlowPosition | undefined): string | undefined {
  const again = forgotten(from, to);
  if (to === undefined) {
    return from && `flow ${from.workflowId} goes away: the checkpoint does not have it${again}`;
  }
  if (from === undefined) return `flow ${to.workflowId} comes back at ${standing(to)}`;
  if (standing(from) === standing(to))
    return again && `flow ${to.workflowId} stays at ${standing(to)}${again}`;
  const steps = from.completedSteps - to.completedSteps;
  const done = steps > 0 ? `; ${steps} completed step${steps === 1 ? "" : "s"} will count as not done` : "";
  const way = steps >= 0 ? "goes back" : "goes forward";
  return `flow ${to.workflowId} ${way} from ${standing(from)} to ${standing(to)}${done}${again}`;
}

/** The outside world does not go back with the files: a command whose record goes would run a second time. */
function forgotten(from: FlowPosition | undefined, to: FlowPosition | undefined): string {
  const count = (from?.onceRecords ?? 0) - (to?.onceRecords ?? 0);
  if (count <= 0) return "";
  return count === 1
    ? "; 1 at-most-once command has run since and will be forgotten: look before it runs again"
    : `; ${count} at-most-once commands have run since and will be forgotten: look before they run again`;
}

function standing({ status, currentStep, completedSteps }: FlowPosition): string {
  if (status === "invalid") return "a damaged file";
  return `step ${JSON.stringify(currentStep)} (${status}, ${completedSteps} done)`;
}

function cut(text: string): string {
  return text.length > MOST_TEXT ? `${text.slice(0, MOST_TEXT)}…` : text;
}

function quietly<T>(look: () => T[]): T[] {
  try {
    return look();
  } catch {
    return [];
  }
}
