// Finds unfinished work that nobody has touched for too long, without an LLM and without a server. The judgement is
// pure; the alerts are sent once per finding until it changes, and every check is entered in the audit log.
import { join } from "node:path";
import { crashPoint } from "../platform/crash-point.ts";
import { makeDirectory, replaceFile } from "../platform/durable.ts";
import { isJsonObject, readJsonFile } from "../platform/json-file.ts";
import type { AlertTargets } from "./alert.ts";
import { audit } from "./audit.ts";
import { formatExact } from "./canonical.ts";
import { type FlowDocument, isExpired, isUnfinished, parseIsoMs } from "./document.ts";
import { visitFlows } from "./list.ts";
import type { BadFlow } from "./quarantine.ts";
import { ageMinutes } from "./transition.ts";
import { listDirectories, ownDirectory, type Workspace } from "./workspace.ts";

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
  if (listDirectories(root).length === 0) return { report, alerted: 0, problems: [] };
  const { alerted, problems } = await alertNew(workspace, report, targets);
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

/** What was alerted about: file → what it looked like then. */
type Sent = Readonly<Record<string, string>>;

/** The pure part: which findings are news, and what to remember once they are sent. */
export function chooseNews(report: SelfcheckReport, sent: Sent): { news: string[]; remember: Sent } {
  const now: Record<string, string> = {};
  for (const { file, status, updatedAt } of report.findings) now[file] = `stale ${status} ${updatedAt}`;
  for (const { file, why, reason } of report.invalid) now[file] = `invalid ${why} ${reason}`;
  const news = Object.keys(now).filter((file) => now[file] !== sent[file]);
  return { news, remember: now };
}

async function alertNew(
  workspace: Workspace,
  report: SelfcheckReport,
  targets: AlertTargets,
): Promise<{ alerted: number; problems: string[] }> {
  if (targets.command === undefined && targets.webhook === undefined) return { alerted: 0, problems: [] };
  const { machine, root } = workspace;
  const path = join(ownDirectory(root), "alerts.json");
  const sent = readSent(path);
  const { news, remember } = chooseNews(report, sent);
  if (news.length > 0) {
    const fresh = new Set(news);
    // Rarely needed, and node:child_process costs 3 ms to load.
    const { sendAlert } = await import("./alert.ts");
    const problems = await sendAlert(machine, targets, {
      schema: "lazarus.flow-alert/1",
      root,
      host: machine.processes.hostName(),
      count: report.count,
      invalid: report.invalid.length,
      thresholdMinutes: report.thresholdMinutes,
      findings: report.findings.filter(({ file }) => fresh.has(file)),
      invalidFiles: report.invalid.filter(({ file }) => fresh.has(file)),
    });
    await audit(workspace, "alert", { news: news.length, delivered: problems.length === 0, problems });
    // Not delivered is not sent: the next check tries again. Twice is better than never.
    if (problems.length > 0) return { alerted: 0, problems };
    crashPoint("flow.selfcheck.alerted");
  }
  if (JSON.stringify(remember) !== JSON.stringify(sent)) {
    makeDirectory(machine.disk, ownDirectory(root));
    replaceFile(machine.disk, path, formatExact({ schema: "lazarus.flow-alerts/1", sent: remember }));
  }
  return { alerted: news.length, problems: [] };
}

const ALERTS_LIMIT_BYTES = 16 * 1024 * 1024;

function readSent(path: string): Sent {
  const reading = readJsonFile(path, ALERTS_LIMIT_BYTES);
  return reading.ok && isJsonObject(reading.value.sent) ? (reading.value.sent as Sent) : {};
}
