// Starts a flow. Order: secrets refused → every used key looked at → the replaced flow's key buried → file written.
// One start at a time per workspace, so that two flows cannot take one idempotency key at once.
import { existsSync } from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { makeDirectory, replaceFile, sweepTemporaries } from "../../platform/durable.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import { pidInUse } from "../../platform/process-identity.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { findQuarantined } from "../document/bad-flow.ts";
import { type FlowDocument, formatFlow } from "../document/document.ts";
import { parseFlowId } from "../document/id.ts";
import { damaged, inQuarantine } from "../document/open-flow.ts";
import { readFlow } from "../document/read.ts";
import { refuseSecrets } from "../document/secrets.ts";
import {
  judgeStart,
  type KnownKey,
  keyOf,
  type NewFlow,
  newDocument,
  type StartVerdict,
} from "../document/transition.ts";
import {
  checkpointDirectory,
  type FlowPlace,
  listDirectories,
  listStems,
  noWorkspace,
  placeOf,
  requireInside,
  type Workspace,
} from "../document/workspace.ts";
import { guardPath, withGuard } from "../locking/change-mutex.ts";
import type { Owner } from "../locking/owner.ts";
import { lockedError, readLock, releaseLock, verdictFor } from "../locking/resume-lock.ts";
import { audit } from "./audit.ts";
import { quarantine } from "./quarantine.ts";
import { bury, readTombstones, tombstoneFile } from "./used-keys.ts";

/** The guard of all starts: a name that no workflow can have. */
const STARTING = ".start";

export interface StartOptions {
  readonly me: Owner;
  /** Replace an unfinished flow of this name. Done work is not started again even so. */
  readonly force?: boolean;
  /** Keep the file below `agents/<agent>/` instead of the workspace's own directory. */
  readonly perAgent?: boolean;
}

export interface Started {
  readonly place: FlowPlace;
  readonly document: FlowDocument;
}

export async function startFlow(
  workspace: Workspace,
  flow: NewFlow,
  options: StartOptions,
): Promise<Started> {
  const { machine, root } = workspace;
  const stem = parseFlowId(flow.workflow, "workflow");
  const agent = parseFlowId(flow.agent, "agent");
  await refuseSecrets(textsOf(flow));
  const place = placeOf(checkpointDirectory(root, options.perAgent ? agent : undefined), stem);
  const shared = checkpointDirectory(root);
  if (!existsSync(root)) throw noWorkspace(root);
  for (const directory of new Set([shared, place.directory])) {
    try {
      makeDirectory(machine.disk, directory);
    } catch (error) {
      throw asLazarusError(error, `making ${directory}`, root);
    }
    requireInside(root, directory);
  }
  return withGuard(machine, guardPath(shared, STARTING), () =>
    withGuard(machine, guardPath(place.directory, stem), async () => {
      const existing = await readExisting(workspace, place, options.force ?? false);
      const verdict = judgeStart(flow, existing, usedKeys(root), options.force ?? false);
      if (!verdict.ok) throw refusal(verdict, flow, root);
      const lock = readLock(place);
      if (verdictFor(machine, lock, options.me) === "held" && !options.force) {
        throw lockedError(place, lock, "starting", "the same command with --force");
      }
      sweepTemporaries(machine.disk, place.directory, pidInUse);
      const document = newDocument(flow, machine.clock.nowMs());
      const text = formatFlow(document);
      if (existing !== undefined && existing.idempotencyKey !== flow.idempotency) {
        bury(workspace, existing);
        crashPoint("flow.start.buried");
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

function textsOf(flow: NewFlow): Record<string, string | undefined> {
  const { workflow, agent, step, idempotency, handoff, notes, remaining = [] } = flow;
  return { workflow, agent, step, idempotency, handoff, notes, remaining: remaining.join("\n") };
}

/** A damaged namesake may be all that is left of the work, in its place or in quarantine; it is never overwritten. */
async function readExisting(
  workspace: Workspace,
  place: FlowPlace,
  force: boolean,
): Promise<FlowDocument | undefined> {
  const reading = readFlow(place);
  if (reading.state === "ok") return reading.document;
  if (reading.state === "absent") {
    const found = force ? undefined : findQuarantined(place.directory, place.stem);
    if (found !== undefined) throw inQuarantine(found.bad, place.stem, "; or start over with --force");
    return undefined;
  }
  const moved = force ? await quarantine(workspace, place) : undefined;
  if (!moved?.quarantined) throw damaged(place, reading);
  return undefined;
}

function usedKeys(root: string): KnownKey[] {
  const known = readTombstones(root);
  for (const directory of listDirectories(root)) {
    for (const stem of listStems(directory)) {
      const reading = readFlow(placeOf(directory, stem));
      if (reading.state === "ok") known.push(keyOf(reading.document));
    }
  }
  return known;
}

function refusal(
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
        { hint: "nothing to do; for another run of the same steps choose a new --idempotency", details },
      );
    case "exists":
      return new LazarusError(
        "FLOW_EXISTS",
        `${by.workflowId} is ${by.status} at step ${JSON.stringify(by.currentStep)}`,
        { hint: `lazarus flow resume --workflow ${stem}, or start over with --force`, details },
      );
    case "key-in-use":
      return new LazarusError(
        "FLOW_EXISTS",
        `key ${key} belongs to ${by.workflowId}, which is ${by.status}`,
        {
          hint: `lazarus flow resume --workflow ${stem}, or choose a new --idempotency`,
          details,
        },
      );
    case "key-expired":
      return new LazarusError(
        "FLOW_EXISTS",
        `key ${key} belongs to ${by.workflowId}, which was removed unfinished at step ${JSON.stringify(by.currentStep)}`,
        {
          hint: `what it had done: grep -F ${shellWord(JSON.stringify(by.workflowId))} ${shellWord(tombstoneFile(root))}; then start over with --force`,
          details,
        },
      );
  }
}
