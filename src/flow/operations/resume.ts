// Finds unfinished work and takes it: schema, hash and expiry verified, the resume lock taken, all inside the flow's
// guard. Nothing is passed over in silence: every flow that was not resumed comes back with its reason (INV-6), and
// bad files go to quarantine without hiding the healthy ones. What could not be looked at is an error, unless there is
// other work to resume.
import { relative } from "node:path";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import { type BadFlow, badInPlace, listQuarantine } from "../document/bad-flow.ts";
import { type FlowDocument, isExpired, isUnfinished } from "../document/document.ts";
import { isFlowId, isTooLong, parseStem } from "../document/id.ts";
import { damaged } from "../document/open-flow.ts";
import { readFlow } from "../document/read.ts";
import {
  closedError,
  type FlowPlace,
  findDirectories,
  listStems,
  locateFlow,
  placeOf,
  type Workspace,
} from "../document/workspace.ts";
import { guardPath, withGuard } from "../locking/change-mutex.ts";
import { describeOwner, type Owner } from "../locking/owner.ts";
import { describeLock, type LockTaken, lockedError, takeLock } from "../locking/resume-lock.ts";
import { audit } from "./audit.ts";
import { quarantine } from "./quarantine.ts";

export interface ResumeRequest {
  readonly workflow?: string | undefined;
  /** Only flows of this agent, or handed to it. */
  readonly agent?: string | undefined;
  readonly me: Owner;
  readonly stealLock?: boolean;
}

export interface PassedOver {
  readonly workflowId: string;
  /** `failed`: it could not be looked at, or its guard is stuck. */
  readonly why: "finished" | "expired" | "locked" | "other-agent" | "failed";
  readonly detail: string;
}

export interface Resumed {
  readonly found: { place: FlowPlace; document: FlowDocument; lock: LockTaken } | undefined;
  readonly passedOver: readonly PassedOver[];
  /** Bad files that this call came across. */
  readonly bad: readonly BadFlow[];
  /** How many lie in quarantine from earlier calls. */
  readonly quarantinedBefore: number;
}

export async function resumeFlow(workspace: Workspace, request: ResumeRequest): Promise<Resumed> {
  const { root } = workspace;
  const { open, closed } = findDirectories(root);
  const quarantinedBefore = open.reduce((sum, directory) => sum + listQuarantine(directory).length, 0);
  const passedOver: PassedOver[] = [];
  const bad: BadFlow[] = [];
  const failures: LazarusError[] = [];
  const fail = (workflowId: string, error: LazarusError): void => {
    failures.push(error);
    passedOver.push({ workflowId, why: "failed", detail: error.message });
  };
  for (const each of request.workflow === undefined ? closed : []) {
    const workflowId = relative(root, each.directory);
    if (each.why === "unreadable") fail(workflowId, closedError(each));
    else passedOver.push({ workflowId, why: "failed", detail: each.reason });
  }
  for (const place of candidates(root, open, request)) {
    try {
      const attempt = await tryResume(workspace, place, request);
      if (attempt === undefined) continue;
      if ("document" in attempt) return { found: { place, ...attempt }, passedOver, bad, quarantinedBefore };
      if ("file" in attempt) bad.push(attempt);
      else passedOver.push(attempt);
    } catch (error) {
      // Asked for by name it is an error at once; else the next one may be well.
      if (request.workflow !== undefined) throw error;
      fail(place.stem, asLazarusError(error, `resuming ${place.stem}`, place.directory));
    }
  }
  if (failures[0] !== undefined) throw withDetails(failures[0], { passedOver, bad });
  return { found: undefined, passedOver, bad, quarantinedBefore };
}

function candidates(root: string, open: readonly string[], { workflow, agent }: ResumeRequest): FlowPlace[] {
  if (workflow === undefined) {
    return open.flatMap((directory) => listStems(directory).map((stem) => placeOf(directory, stem)));
  }
  const place = locateFlow(root, parseStem(workflow), agent);
  return place === undefined ? [] : [place];
}

function withDetails(error: LazarusError, more: Readonly<Record<string, unknown>>): LazarusError {
  const { code, message, hint, cause, details } = error;
  return new LazarusError(code, message, { hint, cause, details: { ...details, ...more } });
}

type Attempt = { document: FlowDocument; lock: LockTaken } | PassedOver | BadFlow | undefined;

async function tryResume(workspace: Workspace, place: FlowPlace, request: ResumeRequest): Promise<Attempt> {
  const { machine } = workspace;
  const named = request.workflow !== undefined;
  // A look without the guard first: finished flows are most of a long-lived workspace.
  const glance = readFlow(place);
  if (glance.state === "absent") return undefined;
  if (glance.state === "ok") {
    const reason = whyNot(glance.document, request, machine.clock.nowMs());
    if (reason !== undefined) return reason;
  } else if (glance.why === "unreadable") {
    const error = damaged(place, glance);
    if (named || error.kind === "machine") throw error;
    return badInPlace(place, glance);
  } else if (isTooLong(place.stem) && !named) return badInPlace(place, glance);
  return withGuard(machine, guardPath(place.directory, place.stem), async (): Promise<Attempt> => {
    const reading = readFlow(place);
    if (reading.state === "absent") return undefined;
    if (reading.state === "bad") {
      const moved = await setAside(workspace, place);
      if (named) throw damaged(moved?.quarantined ? { ...place, file: moved.file } : place, reading);
      return moved;
    }
    const reason = whyNot(reading.document, request, machine.clock.nowMs());
    if (reason !== undefined) return reason;
    const lock = takeLock(machine, place, request.me, request.stealLock ?? false);
    const stolen = lock.verdict === "held" && request.stealLock === true;
    if (lock.verdict === "held" && !stolen) {
      if (named) throw lockedError(place, lock.before, "resuming");
      return { workflowId: place.stem, why: "locked", detail: `locked by ${describeLock(lock.before)}` };
    }
    if (stolen || lock.verdict === "dead") {
      await audit(workspace, "takeover", {
        workflowId: place.stem,
        stolen,
        from: describeLock(lock.before),
        to: describeOwner(request.me),
      });
    }
    return { document: reading.document, lock };
  });
}

/** A file that cannot be moved, in a read-only directory say, is still reported. */
async function setAside(workspace: Workspace, place: FlowPlace): Promise<BadFlow | undefined> {
  try {
    return await quarantine(workspace, place);
  } catch {
    const reading = readFlow(place);
    return reading.state === "bad" ? badInPlace(place, reading) : undefined;
  }
}

/** The pure part: why this flow is not the one to resume; undefined when it is. */
export function whyNot(
  document: FlowDocument,
  { agent }: Pick<ResumeRequest, "agent">,
  nowMs: number,
): PassedOver | undefined {
  const { workflowId } = document;
  if (!isUnfinished(document)) {
    return { workflowId, why: "finished", detail: `${document.status} at ${document.updatedAt}` };
  }
  if (agent !== undefined && document.agentId !== agent && document.handoffTo !== agent) {
    const whose = isFlowId(document.agentId) ? document.agentId : JSON.stringify(document.agentId);
    return { workflowId, why: "other-agent", detail: `belongs to ${whose}` };
  }
  if (isExpired(document, nowMs)) {
    return { workflowId, why: "expired", detail: `expired at ${document.expiresAt}` };
  }
  return undefined;
}
