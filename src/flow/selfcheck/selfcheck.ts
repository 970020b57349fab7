// The self-check of a workspace: finds stale and damaged flows, alerts about new findings, and adds an entry to the audit
// log. Needs no LLM and no server.
import { findDirectories, type Workspace } from "../document/workspace.ts";
import { audit } from "../operations/audit.ts";
import { type AlertTargets, alertFindings } from "./alert.ts";
import { checkFlows, type SelfcheckReport } from "./report.ts";

/** A report, and the alerts that were sent. */
export interface SelfcheckResult {
  readonly report: SelfcheckReport;
  /** How many findings this call sent to a target. */
  readonly alerted: number;
  /** Alerts that were not delivered, an audit log that cannot be written. */
  readonly problems: readonly string[];
}

/** Checks the flows of a workspace and sends alerts for new problems. */
export async function selfcheck(
  workspace: Workspace,
  staleMinutes: number,
  targets: AlertTargets,
): Promise<SelfcheckResult> {
  const { machine, root } = workspace;
  const report = checkFlows(root, machine.clock.nowMs(), staleMinutes);
  // A directory without flows is not a workspace: write nothing there.
  const { open, closed } = findDirectories(root);
  if (open.length + closed.length === 0) return { report, alerted: 0, problems: [] };
  const { alerted, problems } = await alertFindings(workspace, report, targets);
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
