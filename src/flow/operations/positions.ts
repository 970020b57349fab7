// The positions of a cell's flows, for its checkpoints: the current step of each flow, and whether its file is valid.
// Cheap, bounded, and never throws, since a checkpoint must not fail over an unrelated file. `describeFlowMove`
// describes what a restore does to each flow.

import { join, relative } from "node:path";
import { worktreeOf } from "../../cell/worktree-record.ts";
import { formatCount } from "../../platform/count.ts";
import { quietly } from "../../platform/errors.ts";
import type { FlowDocument, FlowStatus } from "../document/document.ts";
import { readFlow } from "../document/read.ts";
import { type FlowPlace, listDirectories, listStems, placeOf } from "../document/workspace.ts";
import { listRecords } from "../once/record.ts";

/** The current step of one flow. */
export interface FlowPosition {
  /** Relative to the cell's root. */
  readonly file: string;
  readonly workflowId: string;
  readonly agentId: string;
  readonly status: FlowStatus | "invalid";
  readonly currentStep: string;
  /** Number of completed steps. */
  readonly completedSteps: number;
  readonly updatedAt: string;
  /** Null when the file carries no hash. */
  readonly hashOk: boolean | null;
  /** The number of recorded at-most-once commands; absent when there are none. */
  readonly onceRecords?: number;
}

/** Usually the worktree; some tools use other directories of the cell. */
const WORKTREE = "worktree";
const DIRECTORIES = [WORKTREE, ".", "state"] as const;
const MAX_FLOWS = 1000;
const MAX_TEXT = 200;

/** The flows of a cell, or of a plain directory; at most 1,000. Never throws. */
export function readFlowPositions(root: string, worktree = worktreeOf(root)): FlowPosition[] {
  const positions: FlowPosition[] = [];
  for (const place of DIRECTORIES) {
    const base = place === WORKTREE ? worktree : join(root, place);
    for (const directory of quietly(() => listDirectories(base)) ?? []) {
      for (const stem of quietly(() => listStems(directory)) ?? []) {
        if (positions.length >= MAX_FLOWS) return positions;
        const flow = placeOf(directory, stem);
        const reading = readFlow(flow);
        if (reading.state === "absent") continue;
        const file = join(place, relative(base, flow.file));
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
    workflowId: truncate(workflowId),
    agentId: truncate(agentId),
    status,
    currentStep: truncate(currentStep),
    completedSteps: completedSteps.length,
    updatedAt,
    hashOk: checkpointHash === undefined ? null : true,
    ...(onceRecords > 0 ? { onceRecords } : {}),
  };
}

function invalid(file: string, stem: string, why: string): FlowPosition {
  return {
    file,
    workflowId: truncate(stem),
    agentId: "",
    status: "invalid",
    currentStep: "",
    completedSteps: 0,
    updatedAt: "",
    hashOk: why === "hash" ? false : null,
  };
}

/**
 * What a restore does to the flows: a sentence per flow, sorted by file; empty when nothing changes. `before` are the
 * current positions, `after` those of the checkpoint. The texts come from files: escape them before printing.
 */
export function describeFlowMove(before: readonly FlowPosition[], after: readonly FlowPosition[]): string[] {
  const now = new Map(before.map((position) => [position.file, position]));
  const then = new Map(after.map((position) => [position.file, position]));
  const files = [...new Set([...now.keys(), ...then.keys()])].sort();
  return files.flatMap((file) => describeMove(now.get(file), then.get(file)) || []);
}

function describeMove(from: FlowPosition | undefined, to: FlowPosition | undefined): string | undefined {
  if (to === undefined) return from && `flow ${from.workflowId} is removed: it is not in the checkpoint`;
  if (from === undefined) return `flow ${to.workflowId} is restored at ${describePosition(to)}`;
  if (describePosition(from) === describePosition(to)) return undefined;
  const steps = from.completedSteps - to.completedSteps;
  const done = steps > 0 ? `; ${formatCount(steps, "completed step")} will count as not done` : "";
  const direction = steps >= 0 ? "goes back" : "goes forward";
  return `flow ${to.workflowId} ${direction} from ${describePosition(from)} to ${describePosition(to)}${done}`;
}

function describePosition({ status, currentStep, completedSteps }: FlowPosition): string {
  if (status === "invalid") return "a damaged file";
  return `step ${JSON.stringify(currentStep)} (${status}, ${completedSteps} done)`;
}

function truncate(text: string): string {
  return text.length > MAX_TEXT ? `${text.slice(0, MAX_TEXT)}…` : text;
}
