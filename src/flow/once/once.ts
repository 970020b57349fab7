// At most once: runs a command under a key and remembers how it ended. Order: flow and lock read → record decided and
// "started" made durable → command → "ended" made durable. A crash between the two leaves *unknown*, which is said
// aloud and never run again by itself (INV-5).
import { existsSync, rmSync } from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { removeFile, replaceFile } from "../../platform/durable.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import { sha256Hex } from "../../platform/sha256.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { formatIso } from "../document/document.ts";
import { type FlowName, findFlow, openFlow } from "../document/open-flow.ts";
import { makeOwn } from "../document/private-directory.ts";
import { formatExact } from "../document/python-json.ts";
import { redactText, refuseSecrets } from "../document/secrets.ts";
import type { FlowPlace, Workspace } from "../document/workspace.ts";
import { guardPath, withGuard } from "../locking/change-mutex.ts";
import { describeOwner, livenessOf, type Owner, ownerFields, selfOwner } from "../locking/owner.ts";
import { lockedError, readLock, verdictFor } from "../locking/resume-lock.ts";
import { type Captured, mapCaptured, parseCaptured } from "./output.ts";
import {
  decideOnce,
  ONCE,
  type OnceDecision,
  type OncePaths,
  type OnceRecord,
  oncePaths,
  readRecord,
  settleTrace,
  type Trace,
} from "./record.ts";
import { type CommandEnd, runCommand } from "./run-command.ts";

export interface OnceRequest extends FlowName {
  readonly key: string;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** For whom; must not be shut out by another's resume lock. */
  readonly me: Owner;
  readonly retryUnknown?: boolean | undefined;
  readonly retryFailed?: boolean | undefined;
  readonly stdin?: "inherit" | "ignore";
  readonly onStdout?: (chunk: Buffer) => void;
  readonly onStderr?: (chunk: Buffer) => void;
  readonly signal?: AbortSignal | undefined;
}

export interface OnceResult {
  /** `replayed` when the command had ended before and was not run by this call. */
  readonly outcome: "ran" | "replayed";
  readonly exitCode: number;
  readonly signal: string | null;
  readonly attempt: number;
  readonly stdout: Captured;
  readonly stderr: Captured;
  readonly recordFile: string;
  readonly remarks: readonly string[];
}

interface Claim {
  readonly paths: OncePaths;
  readonly attempt: number;
  readonly record: Record<string, unknown>;
}

export async function runOnce(workspace: Workspace, request: OnceRequest): Promise<OnceResult> {
  const { machine, root } = workspace;
  await refuseSecrets({ key: request.key });
  const command = await redactText(request.command.join(" "));
  const place = findFlow(root, request);
  const claimed = await withGuard(machine, guardPath(place.directory, place.stem), () =>
    claim(workspace, place, request, command.text),
  );
  if ("replay" in claimed) return replayed(claimed.replay, claimed.paths, request);
  const { paths, attempt, record } = claimed;
  let end: CommandEnd;
  try {
    end = await runCommand({
      ...request,
      stdin: request.stdin ?? "ignore",
      pidFile: paths.pidFile(attempt),
      env: {
        ...request.env,
        LAZARUS_FLOW_WORKFLOW: place.stem,
        LAZARUS_FLOW_KEY: request.key,
        LAZARUS_FLOW_ATTEMPT: String(attempt),
      },
    });
  } catch (error) {
    // No process was made: the claim is void, for this process too, which may live on.
    removeFile(machine.disk, paths.record);
    throw asLazarusError(
      error,
      `starting the command of ${quoted(request.key)} in ${request.cwd}`,
      request.cwd,
    );
  }
  if (!end.began) {
    const now = readRecord(paths.record);
    if (typeof now !== "string" && now.attempt === attempt) removeFile(machine.disk, paths.record);
    throw notBegun(request, paths, end);
  }
  crashPoint("flow.once.command-ended");
  const [stdout, stderr] = [await redacted(end.stdout), await redacted(end.stderr)];
  const ended = { exitCode: end.exitCode, signal: end.signal, stdout: stdout.output, stderr: stderr.output };
  const content = { ...record, state: "ended", endedAt: formatIso(machine.clock.nowMs()), ...ended };
  try {
    replaceFile(machine.disk, paths.record, formatExact(content));
  } catch (error) {
    throw notRecorded(request, paths, end, error);
  }
  crashPoint("flow.once.end-recorded");
  rmSync(paths.pidFile(attempt), { force: true });
  const count = stdout.count + stderr.count;
  const remarks = count > 0 ? [`${count} secrets in the output were not recorded`] : [];
  return { outcome: "ran", ...ended, attempt, recordFile: paths.record, remarks };
}

/** Decides and, when the command is to run, makes "started" durable. Inside the flow's guard. */
function claim(
  workspace: Workspace,
  place: FlowPlace,
  request: OnceRequest,
  commandText: string,
): Claim | { replay: OnceRecord; paths: OncePaths } {
  const { machine, root } = workspace;
  const flow = openFlow(root, place);
  const lock = readLock(place);
  if (verdictFor(machine, lock, request.me) === "held") throw lockedError(place, lock, "working on");
  const paths = oncePaths(place, flow.idempotencyKey, request.key);
  const found = readRecord(paths.record);
  const self = selfOwner(machine.processes);
  const owner = typeof found === "string" ? "dead" : livenessOf(machine.processes, found.owner, self);
  const trace = typeof found !== "string" && owner === "dead" ? traceOf(machine, found, paths, self) : GONE;
  const decision = decideOnce(found, owner, trace, request);
  if (decision.act === "replay") return { replay: decision.record, paths };
  if (decision.act !== "run") throw refusal(decision, found, paths, request, place);
  // An unreadable record does not say which attempts there were; their pid files do.
  let { attempt } = decision;
  while (existsSync(paths.pidFile(attempt))) attempt += 1;
  const record = {
    schema: "lazarus.flow-once/1",
    workflowId: place.stem,
    idempotencyKey: flow.idempotencyKey,
    key: request.key,
    state: "started",
    attempt,
    ...ownerFields(self),
    command: commandText,
    commandHash: hashOf(request.command),
    startedAt: formatIso(machine.clock.nowMs()),
  };
  makeOwn(workspace, place.directory, ONCE, place.stem);
  replaceFile(machine.disk, paths.record, formatExact(record));
  crashPoint("flow.once.start-recorded");
  return { paths, attempt, record };
}

const GONE: Trace = { state: "gone" };

/** After a reboot a missing pid file proves nothing: it was never made durable. */
function traceOf(machine: Machine, record: OnceRecord, paths: OncePaths, self: Owner): Trace {
  if (record.state === "ended" || record.owner.bootId !== self.bootId) return GONE;
  return settleTrace(paths.pidFile(record.attempt), (pid) => machine.processes.identify(pid)?.startTime);
}

function replayed(record: OnceRecord, paths: OncePaths, request: OnceRequest): OnceResult {
  const { document } = record;
  const other = record.commandHash !== hashOf(request.command);
  return {
    outcome: "replayed",
    exitCode: record.exitCode ?? 0,
    signal: record.signal,
    attempt: record.attempt,
    stdout: parseCaptured(document.stdout),
    stderr: parseCaptured(document.stderr),
    recordFile: paths.record,
    remarks: other ? [`key ${quoted(request.key)} was used for another command, whose record this is`] : [],
  };
}

function refusal(
  decision: Exclude<OnceDecision, { act: "run" | "replay" }>,
  record: OnceRecord | "absent" | "unreadable",
  paths: OncePaths,
  { key }: OnceRequest,
  place: FlowPlace,
): LazarusError {
  const details = { workflowId: place.stem, key, record: paths.record };
  const owner = typeof record === "string" ? undefined : record.owner;
  const since = typeof record === "string" ? "" : `, since ${record.startedAt}`;
  if (decision.act === "unknown") {
    const why = typeof record === "string" ? "its record cannot be read" : howItDied(record);
    return new LazarusError("FLOW_OUTCOME_UNKNOWN", `nobody knows whether ${quoted(key)} happened: ${why}`, {
      hint: "look whether it took effect; if not, the same command with --retry-unknown",
      details,
    });
  }
  const who = owner === undefined ? "someone" : describeOwner(owner);
  const says = {
    "owner-alive": `${quoted(key)} is being run by ${who}${since}`,
    "command-running": `${quoted(key)} was started by ${who}, which is gone, and its command still runs${since}`,
    elsewhere: `${quoted(key)} was started by ${who}, which cannot be seen from here${since}`,
  }[decision.why];
  const hint = {
    "owner-alive": `wait for it: ps -p ${owner?.pid} -f`,
    "command-running": `wait for it: ps -p ${"pid" in decision ? decision.pid : ""} -f`,
    elsewhere: "wait for it; if that machine is gone, the same command with --retry-unknown",
  }[decision.why];
  return new LazarusError("FLOW_BUSY", says, { hint, details });
}

function howItDied({ state, signal, exitCode, startedAt }: OnceRecord): string {
  const how =
    state === "started" ? "its run died" : `its command was ended by ${signal ?? `exit code ${exitCode}`}`;
  return `${how} in the middle (started at ${startedAt})`;
}

function notBegun({ key }: OnceRequest, paths: OncePaths, { stderr }: CommandEnd): LazarusError {
  const says = stderr.head.trim().split("\n")[0] ?? "";
  return new LazarusError(
    "DISK_IO",
    `${quoted(key)} was not started: its pid file cannot be written: ${says}`,
    {
      hint: `df -h ${shellWord(paths.directory)}, then run the same command again`,
      details: { key, record: paths.record },
    },
  );
}

/** The one moment at which somebody knows how it ended: said now, or lost. */
function notRecorded({ key }: OnceRequest, paths: OncePaths, end: CommandEnd, cause: unknown): LazarusError {
  const ran = `${quoted(key)} ran and ended with exit code ${end.exitCode}, which could not be recorded`;
  const { code, message } = asLazarusError(cause, ran, paths.directory);
  return new LazarusError(code, message, {
    hint: `df -h ${shellWord(paths.directory)}; its outcome counts as unknown from now on: --retry-unknown runs it again`,
    details: { key, record: paths.record, exitCode: end.exitCode },
    cause,
  });
}

async function redacted(output: Captured): Promise<{ output: Captured; count: number }> {
  let count = 0;
  const clean = await mapCaptured(output, async (text) => {
    const found = await redactText(text);
    count += found.count;
    return found.text;
  });
  return { output: clean, count };
}

function hashOf(command: readonly string[]): string {
  return sha256Hex(JSON.stringify(command));
}

function quoted(text: string): string {
  return JSON.stringify(text.length > 80 ? `${text.slice(0, 80)}…` : text);
}
