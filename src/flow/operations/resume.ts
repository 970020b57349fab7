// Finds an unfinished flow and takes its resume lock, after checking schema, hash and expiry under the flow's mutex. Every
// other flow is reported, either as one that could be resumed too or with the reason why not (INV-6); bad files are
// quarantined and do not hide valid ones. A file or directory that cannot be read is an error, unless another flow can be
// resumed.
import { relative } from "node:path";
import { asLazarusError, type LazarusError } from "../../platform/errors.ts";
import { type BadFlow, badInPlace, listQuarantine } from "../document/bad-flow.ts";
import { type FlowDocument, isExpired, isUnfinished } from "../document/document.ts";
import { isFlowId, isTooLong, parseStem } from "../document/id.ts";
import { damagedError } from "../document/open-flow.ts";
import { readFlow } from "../document/read.ts";
import {
  closedDirectoryError,
  type FlowPlace,
  findDirectories,
  listStems,
  locateFlow,
  placeOf,
  type Workspace,
} from "../document/workspace.ts";
import { mutexPath, withChangeMutex } from "../locking/change-mutex.ts";
import { describeOwner, type Owner } from "../locking/owner.ts";
import {
  describeLock,
  type LockTaken,
  lockedError,
  lockVerdict,
  readLock,
  takeLock,
} from "../locking/resume-lock.ts";
import { audit } from "./audit.ts";
import { quarantine } from "./quarantine.ts";

/** Which flow to resume, and for whom. */
export interface ResumeRequest {
  readonly workflow?: string | undefined;
  /** Only flows of this agent or handed off to it. */
  readonly agent?: string | undefined;
  readonly me: Owner;
  readonly stealLock?: boolean;
}

/** A flow that was not resumed, and why. */
export interface PassedOver {
  readonly workflowId: string;
  /** `failed`: it could not be read, or its mutex is stuck. */
  readonly why: "finished" | "expired" | "locked" | "other-agent" | "failed";
  readonly detail: string;
}

/** Another flow that could be resumed. */
export interface OtherFlow {
  readonly workflowId: string;
  readonly agentId: string;
  readonly status: string;
  readonly currentStep: string;
  readonly updatedAt: string;
}

/** The resumed flow, if any, and those passed over. */
export interface Resumed {
  readonly found: { place: FlowPlace; document: FlowDocument; lock: LockTaken } | undefined;
  readonly passedOver: readonly PassedOver[];
  /** What else could be resumed, when no flow was requested by name. */
  readonly others: readonly OtherFlow[];
  /** Bad files found by this call. */
  readonly bad: readonly BadFlow[];
  /** The number of files quarantined by earlier calls. */
  readonly quarantinedBefore: number;
}

/** Finds an unfinished flow without a living owner and takes it over. */
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
    if (each.why === "unreadable") fail(workflowId, closedDirectoryError(each));
    else passedOver.push({ workflowId, why: "failed", detail: each.reason });
  }
  const places = candidates(root, open, request);
  for (const [n, place] of places.entries()) {
    try {
      const attempt = await tryResume(workspace, place, request);
      if (attempt === undefined) continue;
      if ("document" in attempt) {
        const others = listOthers(workspace, places.slice(n + 1), request, passedOver);
        return { found: { place, ...attempt }, passedOver, others, bad, quarantinedBefore };
      }
      if ("file" in attempt) bad.push(attempt);
      else passedOver.push(attempt);
    } catch (error) {
      // A flow requested by name fails immediately; otherwise another flow may still be resumable.
      if (request.workflow !== undefined) throw error;
      fail(place.stem, asLazarusError(error, `resuming ${place.stem}`, place.directory));
    }
  }
  if (failures[0] !== undefined) throw failures[0].with({ details: { passedOver, bad } });
  return { found: undefined, passedOver, others: [], bad, quarantinedBefore };
}

/** Reads the remaining flows without a lock; those that cannot be resumed are added to `passedOver`. */
function listOthers(
  { machine }: Workspace,
  places: readonly FlowPlace[],
  request: ResumeRequest,
  passedOver: PassedOver[],
): OtherFlow[] {
  const others: OtherFlow[] = [];
  for (const place of places) {
    const reading = readFlow(place);
    if (reading.state !== "ok") continue;
    const reason = skipReason(reading.document, request, machine.clock.nowMs());
    const lock = reason === undefined ? readLock(place) : undefined;
    if (reason !== undefined) passedOver.push(reason);
    else if (lock !== undefined && lockVerdict(machine, lock, request.me) === "held") {
      passedOver.push({ workflowId: place.stem, why: "locked", detail: `locked by ${describeLock(lock)}` });
    } else {
      const { agentId, status, currentStep, updatedAt } = reading.document;
      others.push({ workflowId: place.stem, agentId, status, currentStep, updatedAt });
    }
  }
  return others;
}

function candidates(root: string, open: readonly string[], { workflow, agent }: ResumeRequest): FlowPlace[] {
  if (workflow === undefined) {
    return open.flatMap((directory) => listStems(directory).map((stem) => placeOf(directory, stem)));
  }
  const place = locateFlow(root, parseStem(workflow), agent);
  return place === undefined ? [] : [place];
}

type Attempt = { document: FlowDocument; lock: LockTaken } | PassedOver | BadFlow | undefined;

async function tryResume(workspace: Workspace, place: FlowPlace, request: ResumeRequest): Promise<Attempt> {
  const { machine } = workspace;
  const named = request.workflow !== undefined;
  // Checked without the mutex first: most flows of a long-lived workspace are finished.
  const preview = readFlow(place);
  if (preview.state === "absent") return undefined;
  if (preview.state === "ok") {
    const reason = skipReason(preview.document, request, machine.clock.nowMs());
    if (reason !== undefined) return reason;
  } else if (preview.why === "unreadable") {
    const error = damagedError(place, preview);
    if (named || error.kind === "machine") throw error;
    return badInPlace(place, preview);
  } else if (isTooLong(place.stem) && !named) return badInPlace(place, preview);
  return withChangeMutex(machine, mutexPath(place.directory, place.stem), async (): Promise<Attempt> => {
    const reading = readFlow(place);
    if (reading.state === "absent") return undefined;
    if (reading.state === "bad") {
      const moved = await tryQuarantine(workspace, place);
      if (named) throw damagedError(moved?.quarantined ? { ...place, file: moved.file } : place, reading);
      return moved;
    }
    const reason = skipReason(reading.document, request, machine.clock.nowMs());
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

/** A file that cannot be moved, for example in a read-only directory, is still reported. */
async function tryQuarantine(workspace: Workspace, place: FlowPlace): Promise<BadFlow | undefined> {
  try {
    return await quarantine(workspace, place);
  } catch {
    const reading = readFlow(place);
    return reading.state === "bad" ? badInPlace(place, reading) : undefined;
  }
}

/** Why this flow cannot be resumed; undefined when it can. Pure. */
export function skipReason(
  document: FlowDocument,
  { agent }: Pick<ResumeRequest, "agent">,
  nowMs: number,
): PassedOver | undefined {
  const { workflowId } = document;
  if (!isUnfinished(document)) {
    return { workflowId, why: "finished", detail: `${document.status} at ${document.updatedAt}` };
  }
  if (agent !== undefined && document.agentId !== agent && document.handoffTo !== agent) {
    const owner = isFlowId(document.agentId) ? document.agentId : JSON.stringify(document.agentId);
    return { workflowId, why: "other-agent", detail: `belongs to ${owner}` };
  }
  if (isExpired(document, nowMs)) {
    return { workflowId, why: "expired", detail: `expired at ${document.expiresAt}` };
  }
  return undefined;
}
