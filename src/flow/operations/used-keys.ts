// Idempotency keys of removed flows: before a flow's file is removed or replaced, its key is appended here, one JSON object
// per line, so that finished work is never repeated. For unfinished work the whole document is recorded. Append-only.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { appendLine } from "../../platform/durable.ts";
import { quietly, systemErrorCode } from "../../platform/errors.ts";
import { isJsonObject } from "../../platform/json-file.ts";
import {
  FLOW_STATUSES,
  type FlowDocument,
  type FlowStatus,
  formatIso,
  isUnfinished,
} from "../document/document.ts";
import {
  makePrivateDirectory,
  requireRegularFile,
  rootPrivateDirectory,
} from "../document/private-directory.ts";
import { formatLine } from "../document/python-json.ts";
import { type UsedKey, usedKeyOf } from "../document/transition.ts";
import { checkpointDirectory, type Workspace } from "../document/workspace.ts";

export function usedKeysFile(root: string): string {
  return join(rootPrivateDirectory(root), "tombstones.jsonl");
}

/** Durable at return; only then may the flow's file be removed. */
export function recordUsedKey(workspace: Workspace, document: FlowDocument): void {
  const { machine, root } = workspace;
  makePrivateDirectory(workspace, checkpointDirectory(root));
  requireRegularFile(usedKeysFile(root));
  const { pruned: _, ...usedKey } = usedKeyOf(document);
  // Unfinished work is kept, so that it can be checked before starting over, and is not lost to a clock that was wrong.
  const flow = isUnfinished(document) ? { flow: document } : {};
  const entry = { ...usedKey, buriedAt: formatIso(machine.clock.nowMs()), ...flow };
  appendLine(machine.disk, usedKeysFile(root), formatLine(entry));
}

/** Every recorded key. Torn and unknown lines are skipped. */
export function readUsedKeys(root: string): UsedKey[] {
  let text: string;
  try {
    requireRegularFile(usedKeysFile(root));
    text = readFileSync(usedKeysFile(root), "utf8");
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT" || systemErrorCode(error) === "ENOTDIR") return [];
    throw error;
  }
  return text.split("\n").flatMap((line) => parseLine(line) ?? []);
}

function parseLine(line: string): UsedKey | undefined {
  const value: unknown = quietly(() => JSON.parse(line));
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
