// Idempotency keys outlive their flows: before a flow's file is removed or replaced, its key is entered here, one JSON
// object a line, so that done work stays known as done; unfinished work is entered whole. Lines are only ever added.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { appendLine } from "../../platform/durable.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import { isJsonObject } from "../../platform/json-file.ts";
import {
  FLOW_STATUSES,
  type FlowDocument,
  type FlowStatus,
  formatIso,
  isUnfinished,
} from "../document/document.ts";
import { makeOwn, ownDirectory, requirePlain } from "../document/private-directory.ts";
import { formatLine } from "../document/python-json.ts";
import { type KnownKey, keyOf } from "../document/transition.ts";
import { checkpointDirectory, type Workspace } from "../document/workspace.ts";

export function tombstoneFile(root: string): string {
  return join(ownDirectory(root), "tombstones.jsonl");
}

/** Durable at return: only then may the flow's own file go. */
export function bury(workspace: Workspace, document: FlowDocument): void {
  const { machine, root } = workspace;
  makeOwn(workspace, checkpointDirectory(root));
  requirePlain(tombstoneFile(root));
  const { pruned: _, ...known } = keyOf(document);
  // Unfinished work is not thrown away: whoever starts over must be able to see what had been done, and a clock that
  // was wrong for an hour must not cost it.
  const flow = isUnfinished(document) ? { flow: document } : {};
  const entry = { ...known, buriedAt: formatIso(machine.clock.nowMs()), ...flow };
  appendLine(machine.disk, tombstoneFile(root), formatLine(entry));
}

/** Every key that was buried. A torn or foreign line is no key and hides none. */
export function readTombstones(root: string): KnownKey[] {
  let text: string;
  try {
    requirePlain(tombstoneFile(root));
    text = readFileSync(tombstoneFile(root), "utf8");
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT" || systemErrorCode(error) === "ENOTDIR") return [];
    throw error;
  }
  return text.split("\n").flatMap((line) => parseLine(line) ?? []);
}

function parseLine(line: string): KnownKey | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch {
    return undefined;
  }
  if (!isJsonObject(value)) return undefined;
  const { key, workflowId, status, updatedAt, currentStep } = value;
  if (typeof key !== "string" || !(FLOW_STATUSES as readonly unknown[]).includes(status)) return undefined;
  return {
    key,
    workflowId: String(workflowId),
    status: status as FlowStatus,
    updatedAt: String(updatedAt),
    currentStep: String(currentStep),
    pruned: true,
  };
}
