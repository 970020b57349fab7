// The local diary of a workspace's flows: every self-check, take-over, quarantine, removal and alert, one JSON object a
// line, in `.lazarus/audit.jsonl`. It rotates by size and keeps three old files. Writing it never breaks its caller:
// what went wrong comes back as words.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { appendLine, removeFile } from "../../platform/durable.ts";
import { asLazarusError, systemErrorCode } from "../../platform/errors.ts";
import { formatIso } from "../document/document.ts";
import { makeOwn, ownDirectory, requireOwn, requirePlain } from "../document/private-directory.ts";
import { checkpointDirectory, type Workspace } from "../document/workspace.ts";
import { guardPath, withGuard } from "../locking/change-mutex.ts";

export type AuditKind = "selfcheck" | "alert" | "takeover" | "quarantine" | "mend" | "prune" | "replace";

const ROTATE_AT_BYTES = 1024 * 1024;
const OLD_FILES = 3;

export function auditFile(root: string, age = 0): string {
  return join(ownDirectory(root), age === 0 ? "audit.jsonl" : `audit.${age}.jsonl`);
}

/** Adds an entry. Returns what went wrong instead of throwing it. */
export async function audit(
  workspace: Workspace,
  kind: AuditKind,
  facts: Readonly<Record<string, unknown>>,
  rotateAtBytes: number = ROTATE_AT_BYTES,
): Promise<string | undefined> {
  const { machine, root } = workspace;
  const directory = ownDirectory(root);
  const file = auditFile(root);
  const line = JSON.stringify({ time: formatIso(machine.clock.nowMs()), kind, ...facts });
  try {
    // A log that is there proves that its directory was made durable before its first line.
    const make = isThere(file) ? requireOwn : makeOwn;
    make(workspace, checkpointDirectory(root));
    await withGuard(machine, guardPath(directory, "audit"), () => {
      requirePlain(file);
      if (sizeOf(file) + line.length > rotateAtBytes) rotate(workspace);
      appendLine(machine.disk, file, line);
    });
    return undefined;
  } catch (error) {
    return `the audit log was not written: ${asLazarusError(error, `writing ${file}`, directory).message}`;
  }
}

/** Oldest first, so that a crash in between loses at most the oldest file and never the newest entries. */
function rotate({ machine, root }: Workspace): void {
  removeFile(machine.disk, auditFile(root, OLD_FILES));
  for (let age = OLD_FILES - 1; age >= 0; age -= 1) {
    crashPoint("flow.audit.rotating");
    try {
      machine.disk.rename(auditFile(root, age), auditFile(root, age + 1));
    } catch (error) {
      if (systemErrorCode(error) !== "ENOENT") throw error;
    }
  }
  machine.disk.fsyncDirectory(ownDirectory(root));
}

function sizeOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function isThere(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
