// Alerts about the findings of a self-check: each target gets a finding once, until the finding changes or its delivery
// failed. `.lazarus/alerts.json` records what was sent. Problems are returned as messages: the check itself never fails
// over them, least of all on a full disk, which is when alerts are needed.
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import { replaceFile } from "../../platform/durable.ts";
import { asLazarusError } from "../../platform/errors.ts";
import { isJsonObject, readJsonFile } from "../../platform/json-file.ts";
import { makePrivateDirectory, rootPrivateDirectory } from "../document/private-directory.ts";
import { formatExact } from "../document/python-json.ts";
import { checkpointDirectory, type Workspace } from "../document/workspace.ts";
import { mutexPath, withChangeMutex } from "../locking/change-mutex.ts";
import { audit } from "../operations/audit.ts";
import type { SelfcheckReport } from "./report.ts";

/** A line for /bin/sh, and a URL. */
export interface AlertTargets {
  readonly command?: string | undefined;
  readonly webhook?: string | undefined;
}

export interface AlertResult {
  /** How many findings were sent. */
  readonly alerted: number;
  readonly problems: readonly string[];
}

/** File → the state in which it was last reported. */
type SentFindings = Readonly<Record<string, string>>;

const TARGETS = ["command", "webhook"] as const;
type Target = (typeof TARGETS)[number];

/** Sends new findings to every target. One self-check at a time does so, so that two do not send the same alert. */
export async function alertFindings(
  workspace: Workspace,
  report: SelfcheckReport,
  targets: AlertTargets,
): Promise<AlertResult> {
  if (TARGETS.every((target) => targets[target] === undefined)) return { alerted: 0, problems: [] };
  try {
    const directory = makePrivateDirectory(workspace, checkpointDirectory(workspace.root));
    return await withChangeMutex(workspace.machine, mutexPath(directory, "alerts"), () =>
      alertTargets(workspace, report, targets),
    );
  } catch (error) {
    const failure = asLazarusError(error, "locking the record of sent alerts");
    if (failure.code === "FLOW_BUSY")
      return { alerted: 0, problems: [`no alert was sent: ${failure.message}`] };
    // For example on a full disk: a duplicate alert beats a missed one.
    const { alerted, problems } = await alertTargets(workspace, report, targets);
    return { alerted, problems: [...problems, failure.message] };
  }
}

/** Each target has its own record, so that a failed one is retried without repeating the other. Never throws. */
async function alertTargets(
  workspace: Workspace,
  report: SelfcheckReport,
  targets: AlertTargets,
): Promise<AlertResult> {
  const path = join(rootPrivateDirectory(workspace.root), "alerts.json");
  const before = readSent(path);
  const after = { ...before };
  const alerted = new Set<string>();
  const problems: string[] = [];
  for (const target of TARGETS) {
    const address = targets[target];
    if (address === undefined) continue;
    const { changed, current } = chooseNewFindings(report, before[target] ?? {});
    if (changed.length > 0) {
      const problem = await send(workspace, report, { target, address }, new Set(changed));
      if (problem !== undefined) {
        // Not recorded as sent: the next check tries again.
        problems.push(problem);
        continue;
      }
    }
    after[target] = current;
    for (const file of changed) alerted.add(file);
  }
  if (alerted.size > 0) crashPoint("flow.selfcheck.alerted");
  if (JSON.stringify(after) !== JSON.stringify(before)) problems.push(...writeSent(workspace, path, after));
  return { alerted: alerted.size, problems };
}

/** Which findings are new since the last alert, and what to record once they are sent. Pure. */
export function chooseNewFindings(
  report: SelfcheckReport,
  sent: SentFindings,
): { changed: string[]; current: SentFindings } {
  const current: Record<string, string> = {};
  for (const { file, status, updatedAt } of report.findings) current[file] = `stale ${status} ${updatedAt}`;
  for (const { file, why, reason } of report.invalid) current[file] = `invalid ${why} ${reason}`;
  const changed = Object.keys(current).filter((file) => current[file] !== sent[file]);
  return { changed, current };
}

async function send(
  workspace: Workspace,
  report: SelfcheckReport,
  { target, address }: { target: Target; address: string },
  changed: ReadonlySet<string>,
): Promise<string | undefined> {
  const { machine, root } = workspace;
  // Loaded lazily: rarely needed, and node:child_process costs 3 ms.
  const { deliver } = await import("../../alerts/deliver.ts");
  const destination = target === "command" ? { command: address } : { webhook: address };
  const problem = await deliver(machine, destination, {
    schema: "lazarus.flow-alert/1",
    root,
    host: machine.processes.hostName(),
    count: report.count,
    invalid: report.invalid.length,
    thresholdMinutes: report.thresholdMinutes,
    findings: report.findings.filter(({ file }) => changed.has(file)),
    invalidFiles: report.invalid.filter(({ file }) => changed.has(file)),
  });
  const problems = problem === undefined ? [] : [problem];
  await audit(workspace, "alert", {
    target,
    news: changed.size,
    delivered: problem === undefined,
    problems,
  });
  return problem;
}

const SCHEMA = "lazarus.flow-alerts/2";
const LIMIT_BYTES = 16 * 1024 * 1024;

type SentByTarget = { [target in Target]?: SentFindings };

function readSent(path: string): SentByTarget {
  const reading = readJsonFile(path, LIMIT_BYTES);
  if (!reading.ok || reading.value.schema !== SCHEMA || !isJsonObject(reading.value.sent)) return {};
  const { command, webhook } = reading.value.sent;
  return {
    ...(isJsonObject(command) ? { command: command as SentFindings } : {}),
    ...(isJsonObject(webhook) ? { webhook: webhook as SentFindings } : {}),
  };
}

function writeSent({ machine, root }: Workspace, path: string, sent: SentByTarget): string[] {
  try {
    replaceFile(machine.disk, path, formatExact({ schema: SCHEMA, sent }));
    return [];
  } catch (error) {
    const { message } = asLazarusError(error, `writing ${path}`, rootPrivateDirectory(root));
    return [`the alert was sent but could not be recorded, so it will be sent again: ${message}`];
  }
}
