// Finds unfinished work that nobody has touched for too long, without an LLM and without a server. The judgement is
// pure; who is told of it is in tell.ts, and every check is entered in the audit log.
import type { AlertTargets } from "../../alerts/flow-alert.ts";
import { type FlowDocument, isExpired, isUnfinished, parseIsoMs } from "../document/document.ts";
import { visitFlows } from "../document/list.ts";
import { ageMinutes } from "../document/transition.ts";
import { findDirectories, type Workspace } from "../document/workspace.ts";
import { audit } from "../operations/audit.ts";
import type { BadFlow } from "../operations/quarantine.ts";
import { tellNews } from "./tell.ts";

export interface StaleFlow {
  readonly workflowId: string;
  readonly agentId: string;
  readonly file: string;
  readonly ageMinutes: number;
  readonly status: string;
  readonly currentStep: string;
  readonly updatedAt: string;
}

export interface SelfcheckReport {
  readonly status: "ok" | "alert";
  /** Stale flows. */
  readonly count: number;
  readonly findings: readonly StaleFlow[];
  readonly invalid: readonly BadFlow[];
  readonly thresholdMinutes: number;
  readonly checked: number;
}

export const DEFAULT_STALE_MINUTES = 10;

/** Stale: unfinished, not expired, and its last change is longer ago than the threshold. */
export function isStale(document: FlowDocument, nowMs: number, staleMinutes: number): boolean {
  if (!isUnfinished(document) || isExpired(document, nowMs)) return false;
  const updatedMs = parseIsoMs(document.updatedAt);
  return updatedMs !== undefined && nowMs - updatedMs > staleMinutes * 60_000;
}

export function checkFlows(root: string, nowMs: number, staleMinutes: number): SelfcheckReport {
  const findings: StaleFlow[] = [];
  let healthy = 0;
  const bad = visitFlows(root, (place, document) => {
    healthy += 1;
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
    checked: healthy + bad.length,
  };
}

export interface SelfcheckResult {
  readonly report: SelfcheckReport;
  /** How many findings were alerted about by this call. */
  readonly alerted: number;
  /** What went wrong on the side: an alert that was not delivered, an audit log that cannot be written. */
  readonly problems: readonly string[];
}

export async function selfcheck(
  workspace: Workspace,
  staleMinutes: number,
  targets: AlertTargets,
): Promise<SelfcheckResult> {
  const { machine, root } = workspace;
  const report = checkFlows(root, machine.clock.nowMs(), staleMinutes);
  // A directory without flows is nobody's workspace: leave no trace there.
  const { open, closed } = findDirectories(root);
  if (open.length + closed.length === 0) return { report, alerted: 0, problems: [] };
  const { alerted, problems } = await tellNews(workspace, report, targets);
  const { status, count, invalid, checked } = report;
  const facts = {
    status,
    stale: count,
    invalid: invalid.length,
    checked,
    alerted,
    thresholdMinutes: staleMinutes,
  };
  const failed = await audit(workspace, "selfcheck", facts);
  return { report, alerted, problems: failed === undefined ? problems : [...problems, failed] };
}
