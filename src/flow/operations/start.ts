// Starts a flow. Order: refuse secrets → check all used keys → record the key of a replaced flow → write the file. Only one
// start runs at a time per workspace, so that two flows cannot take the same idempotency key.
import { existsSync } from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { makeDirectory, replaceFile, sweepTemporaries } from "../../platform/durable.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import { pidInUse } from "../../platform/process-identity.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { findQuarantined } from "../document/bad-flow.ts";
import { type FlowDocument, formatFlow } from "../document/document.ts";
import { parseFlowId } from "../document/id.ts";
import { damagedError, quarantinedError } from "../document/open-flow.ts";
import { readFlow } from "../document/read.ts";
import { refuseSecrets } from "../document/secrets.ts";
import {
  decideStart,
  type NewFlow,
  newDocument,
  type StartVerdict,
  type UsedKey,
  usedKeyOf,
} from "../document/transition.ts";
import {
  checkpointDirectory,
  type FlowPlace,
  listDirectories,
  listStems,
  missingWorkspaceError,
  placeOf,
  requireInside,
  type Workspace,
} from "../document/workspace.ts";
import { mutexPath, withChangeMutex } from "../locking/change-mutex.ts";
import type { Owner } from "../locking/owner.ts";
import { lockedError, lockVerdict, readLock, releaseLock } from "../locking/resume-lock.ts";
import { audit } from "./audit.ts";
import { quarantine } from "./quarantine.ts";
import { readUsedKeys, recordUsedKey, usedKeysFile } from "./used-keys.ts";

/** The mutex of all starts: not a valid workflow name. */
const START_MUTEX = ".start";

/** Who starts a flow. */
export interface StartOptions {
  readonly me: Owner;
  /** Replace an unfinished flow of this name. Finished work is never started again under the same key. */
  readonly force?: boolean;
  /** Write the file below `agents/<agent>/` instead of the workspace's own directory. */
  readonly perAgent?: boolean;
}

/** A flow that was started. */
export interface Started {
  readonly place: FlowPlace;
  readonly document: FlowDocument;
}

/** Starts a flow, unless its idempotency key was used before. */
export async function startFlow(
  workspace: Workspace,
  flow: NewFlow,
  options: StartOptions,
): Promise<Started> {
  const { machine, root } = workspace;
  const stem = parseFlowId(flow.workflow, "workflow");
  const agent = parseFlowId(flow.agent, "agent");
  await refuseSecrets(checkedTexts(flow));
  const place = placeOf(checkpointDirectory(root, options.perAgent ? agent : undefined), stem);
  const shared = checkpointDirectory(root);
  if (!existsSync(root)) throw missingWorkspaceError(root);
  for (const directory of new Set([shared, place.directory])) {
    try {
      makeDirectory(machine.disk, directory);
    } catch (error) {
      throw asLazarusError(error, `creating ${directory}`, root);
    }
    requireInside(root, directory);
  }
  return withChangeMutex(machine, mutexPath(shared, START_MUTEX), () =>
    withChangeMutex(machine, mutexPath(place.directory, stem), async () => {
      const existing = await readExisting(workspace, place, options.force ?? false);
      const verdict = decideStart(flow, existing, collectUsedKeys(root), options.force ?? false);
      if (!verdict.ok) throw refusalError(verdict, flow, root);
      const lock = readLock(place);
      if (lockVerdict(machine, lock, options.me) === "held" && !options.force) {
        throw lockedError(place, lock, "starting", "the same command with --force");
      }
      sweepTemporaries(machine.disk, place.directory, pidInUse);
      const document = newDocument(flow, machine.clock.nowMs());
      const text = formatFlow(document);
      if (existing !== undefined && existing.idempotencyKey !== flow.idempotency) {
        recordUsedKey(workspace, existing);
        crashPoint("flow.start.key-recorded");
      }
      replaceFile(machine.disk, place.file, text);
      crashPoint("flow.start.written");
      releaseLock(machine, place, options.me, options.force);
      if (existing !== undefined && options.force) {
        await audit(workspace, "replace", {
          workflowId: stem,
          status: existing.status,
          step: existing.currentStep,
        });
      }
      return { place, document };
    }),
  );
}

function checkedTexts(flow: NewFlow): Record<string, string | undefined> {
  const { workflow, agent, step, idempotency, handoff, notes, remaining = [] } = flow;
  return { workflow, agent, step, idempotency, handoff, notes, remaining: remaining.join("\n") };
}

/** A damaged file of this name may be all that is left of the work, so it is never overwritten. */
async function readExisting(
  workspace: Workspace,
  place: FlowPlace,
  force: boolean,
): Promise<FlowDocument | undefined> {
  const reading = readFlow(place);
  if (reading.state === "ok") return reading.document;
  if (reading.state === "absent") {
    const found = force ? undefined : findQuarantined(place.directory, place.stem);
    if (found !== undefined) throw quarantinedError(found.bad, place.stem, "; or start over with --force");
    return undefined;
  }
  const moved = force ? await quarantine(workspace, place) : undefined;
  if (!moved?.quarantined) throw damagedError(place, reading);
  return undefined;
}

function collectUsedKeys(root: string): UsedKey[] {
  const keys = readUsedKeys(root);
  for (const directory of listDirectories(root)) {
    for (const stem of listStems(directory)) {
      const reading = readFlow(placeOf(directory, stem));
      if (reading.state === "ok") keys.push(usedKeyOf(reading.document));
    }
  }
  return keys;
}

function refusalError(
  { why, by }: Extract<StartVerdict, { ok: false }>,
  flow: NewFlow,
  root: string,
): LazarusError {
  const key = JSON.stringify(flow.idempotency);
  const stem = shellWord(by.workflowId);
  const details = { workflowId: by.workflowId, status: by.status, currentStep: by.currentStep };
  switch (why) {
    case "done":
      return new LazarusError(
        "FLOW_ALREADY_DONE",
        `the work with key ${key} is already done: ${by.workflowId}, at ${by.updatedAt}`,
        { hint: "nothing to do; to run the same steps again, use a new --idempotency key", details },
      );
    case "exists":
      return new LazarusError(
        "FLOW_EXISTS",
        `workflow ${by.workflowId} already exists: ${by.status} at step ${JSON.stringify(by.currentStep)}`,
        { hint: `lazarus flow resume --workflow ${stem}, or start over with --force`, details },
      );
    case "key-in-use":
      return new LazarusError(
        "FLOW_EXISTS",
        `key ${key} belongs to ${by.workflowId}, which is ${by.status}`,
        {
          hint: `lazarus flow resume --workflow ${stem}, or use a new --idempotency key`,
          details,
        },
      );
    case "key-expired":
      return new LazarusError(
        "FLOW_EXISTS",
        `key ${key} belongs to ${by.workflowId}, which was removed unfinished at step ${JSON.stringify(by.currentStep)}`,
        {
          hint: `see what it had done: grep -F ${shellWord(JSON.stringify(by.workflowId))} ${shellWord(usedKeysFile(root))}; then start over with --force`,
          details,
        },
      );
  }
}
