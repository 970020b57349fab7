// Tells about what a self-check found: every target once per finding, until the finding changes or was not delivered. The
// book of what was sent is `.lazarus/alerts.json`. What goes wrong comes back as words; the check itself never fails
// over it, least of all on a full disk, which is when alerts are needed.
import { join } from "node:path";
import type { AlertTargets } from "../../alerts/flow-alert.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { replaceFile } from "../../platform/durable.ts";
import { asLazarusError } from "../../platform/errors.ts";
import { isJsonObject, readJsonFile } from "../../platform/json-file.ts";
import { makeOwn, ownDirectory } from "../document/private-directory.ts";
import { formatExact } from "../document/python-json.ts";
import { checkpointDirectory, type Workspace } from "../document/workspace.ts";
import { guardPath, withGuard } from "../locking/change-mutex.ts";
import { audit } from "../operations/audit.ts";
import type { SelfcheckReport } from "./selfcheck.ts";

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

const TARGETS = ["command", "webhook"] as const;

interface Alerted {
  readonly alerted: number;
  readonly problems: readonly string[];
}

/** One self-check at a time tells, so that two at once do not tell the same. */
export async function tellNews(
  workspace: Workspace,
  report: SelfcheckReport,
  targets: AlertTargets,
): Promise<Alerted> {
  if (TARGETS.every((target) => targets[target] === undefined)) return { alerted: 0, problems: [] };
  try {
    const directory = makeOwn(workspace, checkpointDirectory(workspace.root));
    return await withGuard(workspace.machine, guardPath(directory, "alerts"), () =>
      tellTargets(workspace, report, targets),
    );
  } catch (error) {
    const failure = asLazarusError(error, "keeping the book of alerts");
    if (failure.code === "FLOW_BUSY")
      return { alerted: 0, problems: [`no alert was sent: ${failure.message}`] };
    // On a full disk, say. Twice is better than never.
    const { alerted, problems } = await tellTargets(workspace, report, targets);
    return { alerted, problems: [...problems, failure.message] };
  }
}

/** Each target has a book of its own: one that fails is told again, and the other is not. Never throws. */
async function tellTargets(
  workspace: Workspace,
  report: SelfcheckReport,
  targets: AlertTargets,
): Promise<Alerted> {
  const path = join(ownDirectory(workspace.root), "alerts.json");
  const before = readBook(path);
  const after = { ...before };
  const told = new Set<string>();
  const problems: string[] = [];
  for (const target of TARGETS) {
    if (targets[target] === undefined) continue;
    const { news, remember } = chooseNews(report, before[target] ?? {});
    const failed = news.length === 0 ? [] : await tell(workspace, report, target, targets, new Set(news));
    problems.push(...failed);
    // Not delivered is not sent: the next check tries again.
    if (failed.length > 0) continue;
    after[target] = remember;
    for (const file of news) told.add(file);
  }
  if (told.size > 0) crashPoint("flow.selfcheck.alerted");
  if (JSON.stringify(after) !== JSON.stringify(before)) problems.push(...writeBook(workspace, path, after));
  return { alerted: told.size, problems };
}

async function tell(
  workspace: Workspace,
  report: SelfcheckReport,
  target: (typeof TARGETS)[number],
  targets: AlertTargets,
  fresh: ReadonlySet<string>,
): Promise<string[]> {
  const { machine, root } = workspace;
  // Rarely needed, and node:child_process costs 3 ms to load.
  const { sendAlert } = await import("../../alerts/flow-alert.ts");
  const only: AlertTargets = { [target]: targets[target], webhookHeaders: targets.webhookHeaders };
  const problems = await sendAlert(machine, only, {
    schema: "lazarus.flow-alert/1",
    root,
    host: machine.processes.hostName(),
    count: report.count,
    invalid: report.invalid.length,
    thresholdMinutes: report.thresholdMinutes,
    findings: report.findings.filter(({ file }) => fresh.has(file)),
    invalidFiles: report.invalid.filter(({ file }) => fresh.has(file)),
  });
  const delivered = problems.length === 0;
  await audit(workspace, "alert", { target, news: fresh.size, delivered, problems });
  return problems;
}

const BOOK_SCHEMA = "lazarus.flow-alerts/2";
const BOOK_LIMIT_BYTES = 16 * 1024 * 1024;

type Book = { [target in (typeof TARGETS)[number]]?: Sent };

function readBook(path: string): Book {
  const reading = readJsonFile(path, BOOK_LIMIT_BYTES);
  if (!reading.ok || reading.value.schema !== BOOK_SCHEMA || !isJsonObject(reading.value.sent)) return {};
  const { command, webhook } = reading.value.sent;
  return {
    ...(isJsonObject(command) ? { command: command as Sent } : {}),
    ...(isJsonObject(webhook) ? { webhook: webhook as Sent } : {}),
  };
}

function writeBook({ machine, root }: Workspace, path: string, sent: Book): string[] {
  try {
    replaceFile(machine.disk, path, formatExact({ schema: BOOK_SCHEMA, sent }));
    return [];
  } catch (error) {
    const { message } = asLazarusError(error, `writing ${path}`, ownDirectory(root));
    return [`what was sent is not remembered, and will be sent again: ${message}`];
  }
}
