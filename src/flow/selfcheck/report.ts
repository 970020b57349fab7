// Finds unfinished flows that have not changed for too long, and bad files. Reads only.
import type { BadFlow } from "../document/bad-flow.ts";
import { type FlowDocument, isExpired, isUnfinished, parseIsoMs } from "../document/document.ts";
import { visitFlows } from "../document/list.ts";
import { ageMinutes } from "../document/transition.ts";

export interface StaleFlow {
  readonly workflowId: string;
  readonly agentId: string;
  readonly file: string;
  readonly ageMinutes: number;
  readonly status: string;
  readonly currentStep: string;
  readonly updatedAt: string;
}

/** The problems of a workspace's flows. */
export interface SelfcheckReport {
  readonly status: "ok" | "alert";
  /** The number of stale flows. */
  readonly count: number;
  readonly findings: readonly StaleFlow[];
  readonly invalid: readonly BadFlow[];
  readonly thresholdMinutes: number;
  readonly checked: number;
}

export const DEFAULT_STALE_MINUTES = 10;

/** Whether a flow is unfinished, not expired, and was last changed longer ago than the threshold. */
export function isStale(document: FlowDocument, nowMs: number, staleMinutes: number): boolean {
  if (!isUnfinished(document) || isExpired(document, nowMs)) return false;
  const updatedMs = parseIsoMs(document.updatedAt);
  return updatedMs !== undefined && nowMs - updatedMs > staleMinutes * 60_000;
}

/** Reports stale flows and bad files. */
export function checkFlows(root: string, nowMs: number, staleMinutes: number): SelfcheckReport {
  const findings: StaleFlow[] = [];
  let readable = 0;
  const bad = visitFlows(root, (place, document) => {
    readable += 1;
    if (!isStale(document, nowMs, staleMinutes)) return;
    const { workflowId, agentId, status, currentStep, updatedAt } = document;
    const age = ageMinutes(document, nowMs);
    findings.push({ workflowId, agentId, file: place.file, ageMinutes: age, status, currentStep, updatedAt });
  });
  return {
    status: findings.length + bad.length > 0 ? "alert" : "ok",
    count: findings.length,
    findings,
    invalid: bad,
    thresholdMinutes: staleMinutes,
    checked: readable + bad.length,
  };
}
