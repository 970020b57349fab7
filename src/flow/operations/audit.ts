// The audit log of a workspace's flows, `.lazarus/audit.jsonl`: every self-check, takeover, quarantine, removal and alert,
// one JSON object per line. It rotates by size and keeps three old files. A failed write is returned as a message and
// never fails the caller.
import { lstatSync } from "node:fs";
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { appendLine, removeFile } from "../../platform/durable.ts";
import { asLazarusError, systemErrorCode } from "../../platform/errors.ts";
import { formatIso } from "../document/document.ts";
import {
  makePrivateDirectory,
  requirePrivateDirectory,
  requireRegularFile,
  rootPrivateDirectory,
} from "../document/private-directory.ts";
import { checkpointDirectory, type Workspace } from "../document/workspace.ts";
import { mutexPath, withChangeMutex } from "../locking/change-mutex.ts";

export type AuditKind = "selfcheck" | "alert" | "takeover" | "quarantine" | "mend" | "prune" | "replace";

const ROTATE_AT_BYTES = 1024 * 1024;
const OLD_FILES = 3;

export function auditFile(root: string, age = 0): string {
  return join(rootPrivateDirectory(root), age === 0 ? "audit.jsonl" : `audit.${age}.jsonl`);
}

/** Adds an entry. Returns an error message instead of throwing. */
export async function audit(
  workspace: Workspace,
  kind: AuditKind,
  facts: Readonly<Record<string, unknown>>,
  rotateAtBytes: number = ROTATE_AT_BYTES,
): Promise<string | undefined> {
  const { machine, root } = workspace;
  const directory = rootPrivateDirectory(root);
  const file = auditFile(root);
  const line = JSON.stringify({ time: formatIso(machine.clock.nowMs()), kind, ...facts });
  try {
    // If the log exists, its directory is durable already.
    const prepare = exists(file) ? requirePrivateDirectory : makePrivateDirectory;
    prepare(workspace, checkpointDirectory(root));
    await withChangeMutex(machine, mutexPath(directory, "audit"), () => {
      requireRegularFile(file);
      if (sizeOf(file) + line.length > rotateAtBytes) rotate(workspace);
      appendLine(machine.disk, file, line);
    });
    return undefined;
  } catch (error) {
    return `the audit log was not written: ${asLazarusError(error, `writing ${file}`, directory).message}`;
  }
}

/** Oldest first: a crash in between loses at most the oldest file. */
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
  machine.disk.fsyncDirectory(rootPrivateDirectory(root));
}

function sizeOf(path: string): number {
  return lstatSync(path, { throwIfNoEntry: false })?.size ?? 0;
}

function exists(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false }) !== undefined;
}
