// How a flow changes: pure functions from a document and a requested change to the next document, or to a refusal. No I/O
// and no clock: operations/start.ts and operations/change.ts read, call these and write.
import {
  expiryAfter,
  type FlowDocument,
  type FlowStatus,
  formatIso,
  isUnfinished,
  parseIsoMs,
  SCHEMA_VERSION,
  withCheckpointHash,
} from "./document.ts";

/** A flow to start. */
export interface NewFlow {
  readonly workflow: string;
  readonly agent: string;
  readonly step: string;
  readonly idempotency: string;
  readonly remaining?: readonly string[] | undefined;
  readonly handoff?: string | undefined;
  readonly notes?: string | undefined;
  readonly ttlDays?: number | undefined;
}

/** A change to a flow. */
export interface FlowChange {
  readonly complete?: readonly string[] | undefined;
  readonly step?: string | undefined;
  readonly status?: FlowStatus | undefined;
  readonly notes?: string | undefined;
  readonly handoff?: string | undefined;
  /** Sets the expiry to this many days from now. */
  readonly ttlDays?: number | undefined;
}

/** The result of a change: the new document, or why it is refused. */
export type Transition =
  | { readonly to: FlowDocument; readonly remarks: readonly string[] }
  | { readonly unchanged: true; readonly remarks: readonly string[] }
  | { readonly refused: "done" | "failed"; readonly message: string };

export const DEFAULT_TTL_DAYS = 7;

export function newDocument(flow: NewFlow, nowMs: number): FlowDocument {
  return withCheckpointHash({
    schemaVersion: SCHEMA_VERSION,
    workflowId: flow.workflow,
    agentId: flow.agent,
    status: "in_progress",
    currentStep: flow.step,
    completedSteps: [],
    remainingSteps: [...(flow.remaining ?? [])],
    handoffTo: flow.handoff ?? null,
    notes: flow.notes ?? "",
    idempotencyKey: flow.idempotency,
    updatedAt: formatIso(nowMs),
    expiresAt: expiryAfter(flow.ttlDays ?? DEFAULT_TTL_DAYS, nowMs),
  });
}

/** Applies a change. A finished flow is not changed; repeating a change that is already in effect does no harm. */
export function applyChange(flow: FlowDocument, change: FlowChange, nowMs: number): Transition {
  const refusal = refuse(flow, change);
  if (refusal !== undefined) return refusal;
  const remarks: string[] = [];
  const completed = [...flow.completedSteps];
  let remaining = [...flow.remainingSteps];
  let current = flow.currentStep;
  for (const step of change.complete ?? []) {
    if (completed.includes(step)) {
      remarks.push(`${step} was already complete`);
    } else {
      if (step !== flow.currentStep && !remaining.includes(step) && remaining.length > 0) {
        remarks.push(`${step} was not in the list of steps; it was added as a completed step`);
      }
      completed.push(step);
    }
    remaining = remaining.filter((other) => other !== step);
  }
  // The current step is done and no next step was given: continue with the first remaining one.
  if (change.step !== undefined) current = change.step;
  else if (completed.includes(current) && change.complete?.includes(current) && remaining[0] !== undefined) {
    current = remaining[0];
  }
  const status = change.status ?? flow.status;
  const to: Record<string, unknown> = {
    ...flow,
    status,
    currentStep: current,
    completedSteps: completed,
    remainingSteps: status === "done" ? [] : remaining,
    updatedAt: formatIso(Math.max(nowMs, 0)),
  };
  if (change.notes !== undefined) to.notes = change.notes;
  if (change.handoff !== undefined) to.handoffTo = change.handoff;
  if (change.ttlDays !== undefined) to.expiresAt = expiryAfter(change.ttlDays, nowMs);
  return { to: withCheckpointHash(to as unknown as FlowDocument), remarks };
}

function refuse(flow: FlowDocument, change: FlowChange): Transition | undefined {
  if (flow.status === "done") {
    const asked = change.complete ?? [];
    const since = `${flow.workflowId} has been done since ${flow.updatedAt}`;
    const isRepeat =
      (change.status === undefined || change.status === "done") &&
      change.step === undefined &&
      asked.every((step) => flow.completedSteps.includes(step));
    if (isRepeat) return { unchanged: true, remarks: [`${since}; nothing to change`] };
    return { refused: "done", message: `${since}; a finished flow is not reopened` };
  }
  if (flow.status === "failed" && change.status === undefined) {
    return { refused: "failed", message: `${flow.workflowId} failed at ${flow.updatedAt}` };
  }
  return undefined;
}

export type StartVerdict =
  | { readonly ok: true }
  | {
      readonly ok: false;
      readonly why: "exists" | "done" | "key-in-use" | "key-expired";
      readonly by: UsedKey;
    };

/** An idempotency key that has been used, by an existing flow or by one that was removed. */
export interface UsedKey {
  readonly key: string;
  readonly workflowId: string;
  readonly status: FlowStatus;
  readonly updatedAt: string;
  readonly currentStep: string;
  readonly pruned: boolean;
}

/**
 * Whether this flow may start. `used` holds every key of the workspace. Finished work is never started again under the
 * same key, not even with `force`: a new run needs a new key. Unfinished work is replaced only with `force`.
 */
export function decideStart(
  flow: Pick<NewFlow, "workflow" | "idempotency">,
  existing: FlowDocument | undefined,
  used: readonly UsedKey[],
  force: boolean,
): StartVerdict {
  const sameKey = used.filter((entry) => entry.key === flow.idempotency);
  const done = sameKey.find((entry) => entry.status === "done");
  if (done !== undefined) return { ok: false, why: "done", by: done };
  if (force) return { ok: true };
  if (existing !== undefined && isUnfinished(existing)) {
    return { ok: false, why: "exists", by: usedKeyOf(existing) };
  }
  const open = sameKey.find((entry) => entry.status !== "failed");
  if (open !== undefined) return { ok: false, why: open.pruned ? "key-expired" : "key-in-use", by: open };
  return { ok: true };
}

export function usedKeyOf(document: FlowDocument, pruned = false): UsedKey {
  const { idempotencyKey: key, workflowId, status, updatedAt, currentStep } = document;
  return { key, workflowId, status, updatedAt, currentStep, pruned };
}

/** Whole minutes since the last change; never negative. */
export function ageMinutes(document: FlowDocument, nowMs: number): number {
  return Math.max(0, Math.floor((nowMs - (parseIsoMs(document.updatedAt) ?? nowMs)) / 60_000));
}
