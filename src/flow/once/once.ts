// Runs a command under a key at most once, and records how it ended. Order: read flow and lock → decide, and make "started"
// durable, in the record and then in the mission's effect history → run the command → make "ended" durable, in the history
// and then in the record. A crash between the two leaves an unknown outcome, which is reported and never retried
// automatically (INV-5).

import { existsSync, rmSync } from "node:fs";
import { formatCount } from "../../platform/count.ts";
import { crashPoint } from "../../platform/crash-point.ts";
import { removeFile, replaceFile } from "../../platform/durable.ts";
import { asLazarusError, LazarusError } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import { sha256Hex } from "../../platform/sha256.ts";
import { shellWord } from "../../platform/shell-word.ts";
import { formatIso } from "../document/document.ts";
import { type FlowName, findFlow, openFlow } from "../document/open-flow.ts";
import { makePrivateDirectory } from "../document/private-directory.ts";
import { formatExact } from "../document/python-json.ts";
import { redactText, refuseSecrets } from "../document/secrets.ts";
import type { FlowPlace, Workspace } from "../document/workspace.ts";
import { mutexPath, withChangeMutex } from "../locking/change-mutex.ts";
import { describeOwner, livenessOf, type Owner, ownerFields, selfOwner } from "../locking/owner.ts";
import { lockedError, lockVerdict, readLock } from "../locking/resume-lock.ts";
import { consultHistory, type OnceHistory, openOnceHistory, recordEnd } from "./history.ts";
import { type Captured, mapCaptured, parseCaptured } from "./output.ts";
import {
  decideOnce,
  ONCE,
  type OnceDecision,
  type OncePaths,
  type OnceRecord,
  oncePaths,
  readRecord,
  resolveTrace,
  type Trace,
} from "./record.ts";
import { type CommandEnd, runCommand } from "./run-command.ts";

/** A command to run at most once. */
export interface OnceRequest extends FlowName {
  readonly key: string;
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Must not be locked out by the resume lock of another owner. */
  readonly me: Owner;
  readonly retryUnknown?: boolean | undefined;
  readonly retryFailed?: boolean | undefined;
  readonly stdin?: "inherit" | "ignore";
  readonly onStdout?: (chunk: Buffer) => void;
  readonly onStderr?: (chunk: Buffer) => void;
  readonly signal?: AbortSignal | undefined;
}

/** The result of a command, run now or replayed from its record. */
export interface OnceResult {
  /** `replayed` when the command had already ended and was not run by this call. */
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
  /** Undefined outside a cell. */
  readonly effect: OnceHistory | undefined;
  readonly attempt: number;
  readonly record: Record<string, unknown>;
}

/** Runs a command at most once; replays its recorded result afterwards. */
export async function runOnce(workspace: Workspace, request: OnceRequest): Promise<OnceResult> {
  const { machine, root } = workspace;
  await refuseSecrets({ key: request.key });
  const command = await redactText(request.command.join(" "));
  const place = findFlow(root, request);
  const claimed = await withChangeMutex(machine, mutexPath(place.directory, place.stem), () =>
    claim(workspace, place, request, command.text),
  );
  if ("replay" in claimed) return replayed(claimed.replay, claimed.recordFile, request);
  const { paths, attempt, record, effect } = claimed;
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
    // No process was created. Withdraw the claim: it counts as busy as long as this process lives.
    withdraw(machine, claimed);
    throw asLazarusError(
      error,
      `starting the command of ${quoted(request.key)} in ${request.cwd}`,
      request.cwd,
    );
  }
  if (!end.began) {
    const now = readRecord(paths.record);
    if (typeof now !== "string" && now.attempt === attempt) withdraw(machine, claimed);
    throw notBegunError(request, paths, end);
  }
  crashPoint("flow.once.command-ended");
  const [stdout, stderr] = [await redacted(end.stdout), await redacted(end.stderr)];
  const ended = { exitCode: end.exitCode, signal: end.signal, stdout: stdout.output, stderr: stderr.output };
  const content = { ...record, state: "ended", endedAt: formatIso(machine.clock.nowMs()), ...ended };
  try {
    if (effect !== undefined) recordEnd(effect, attempt, ended);
    crashPoint("flow.once.end-in-history");
    replaceFile(machine.disk, paths.record, formatExact(content));
  } catch (error) {
    throw notRecordedError(request, paths, end, error);
  }
  crashPoint("flow.once.end-recorded");
  rmSync(paths.pidFile(attempt), { force: true });
  const count = stdout.count + stderr.count;
  const remarks = count > 0 ? [`redacted ${formatCount(count, "secret")} in the recorded output`] : [];
  return { outcome: "ran", ...ended, attempt, recordFile: paths.record, remarks };
}

/** Decides, and if the command is to run, makes "started" durable. The caller holds the flow's mutex. */
function claim(
  workspace: Workspace,
  place: FlowPlace,
  request: OnceRequest,
  commandText: string,
): Claim | { replay: OnceRecord; recordFile: string } {
  const { machine, root } = workspace;
  const flow = openFlow(root, place);
  const lock = readLock(place);
  if (lockVerdict(machine, lock, request.me) === "held") throw lockedError(place, lock, "working on");
  const paths = oncePaths(place, flow.idempotencyKey, request.key);
  const effect = openOnceHistory(workspace, paths.record);
  const {
    record: found,
    fromHistory,
    traceable,
    attempts,
  } = consultHistory(readRecord(paths.record), effect);
  const self = selfOwner(machine.processes);
  const owner = typeof found === "string" ? "dead" : livenessOf(machine.processes, found.owner, self);
  const hasTrace = typeof found !== "string" && owner === "dead" && traceable;
  const trace = hasTrace ? traceOf(machine, found, paths, self) : GONE;
  const decision = decideOnce(found, owner, trace, request);
  const recordFile = fromHistory && effect !== undefined ? effect.history.file : paths.record;
  if (decision.act === "replay") return { replay: decision.record, recordFile };
  if (decision.act !== "run") throw refusalError(decision, found, paths, request, place);
  // An unreadable record does not tell how many attempts there were; their pid files do.
  let attempt = Math.max(decision.attempt, attempts + 1);
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
  makePrivateDirectory(workspace, place.directory, ONCE, place.stem);
  replaceFile(machine.disk, paths.record, formatExact(record));
  crashPoint("flow.once.start-recorded");
  if (effect !== undefined && !startInHistory(effect, request, place, record, self)) {
    removeFile(machine.disk, paths.record);
    throw refusalError({ act: "busy", why: "owner-alive" }, "absent", paths, request, place);
  }
  crashPoint("flow.once.start-in-history");
  return { paths, effect, attempt, record };
}

/** False when another process started the same attempt first, for example under the mutex of another workspace. */
function startInHistory(
  { history, id }: OnceHistory,
  { key, env }: OnceRequest,
  { stem }: FlowPlace,
  { attempt, command, commandHash }: { attempt: number; command: string; commandHash: string },
  self: Owner,
): boolean {
  return history.start({
    source: "once",
    id,
    attempt,
    digest: commandHash,
    name: key,
    where: stem,
    what: command.slice(0, 200),
    epoch: Number(env.LAZARUS_EPOCH) || null,
    owner: ownerFields(self),
  });
}

/** The command was not started. In the history first: after that, it does not matter whether the record is removed. */
function withdraw({ disk }: Machine, { effect, attempt, paths }: Claim): void {
  effect?.history.append({ source: "once", id: effect.id, attempt, state: "withdrawn" });
  removeFile(disk, paths.record);
}

const GONE: Trace = { state: "gone" };

/** After a reboot a missing pid file proves nothing, since it was not durable. */
function traceOf(machine: Machine, record: OnceRecord, paths: OncePaths, self: Owner): Trace {
  if (record.state === "ended" || record.owner.bootId !== self.bootId) return GONE;
  return resolveTrace(paths.pidFile(record.attempt), (pid) => machine.processes.identify(pid)?.startTime);
}

function replayed(record: OnceRecord, recordFile: string, request: OnceRequest): OnceResult {
  const { document } = record;
  const other = record.commandHash !== hashOf(request.command);
  return {
    outcome: "replayed",
    exitCode: record.exitCode ?? 0,
    signal: record.signal,
    attempt: record.attempt,
    stdout: parseCaptured(document.stdout),
    stderr: parseCaptured(document.stderr),
    recordFile,
    remarks: other ? [`key ${quoted(request.key)} was used for a different command; this is its record`] : [],
  };
}

function refusalError(
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
    const why = typeof record === "string" ? "its record cannot be read" : describeEnd(record);
    return new LazarusError("FLOW_OUTCOME_UNKNOWN", `the outcome of ${quoted(key)} is unknown: ${why}`, {
      hint: "check whether it took effect; if not, run the same command with --retry-unknown",
      details,
    });
  }
  const who = owner === undefined ? "another process" : describeOwner(owner);
  const message = {
    "owner-alive": `${quoted(key)} is being run by ${who}${since}`,
    "command-running": `${quoted(key)} was started by ${who}, which is gone, and the command is still running${since}`,
    elsewhere: `${quoted(key)} was started by ${who}, which is not visible from here${since}`,
  }[decision.why];
  const hint = {
    "owner-alive": `wait for it: ps -p ${owner?.pid} -f`,
    "command-running": `wait for it: ps -p ${"pid" in decision ? decision.pid : ""} -f`,
    elsewhere: "wait for it; if that machine is gone, run the same command with --retry-unknown",
  }[decision.why];
  return new LazarusError("FLOW_BUSY", message, { hint, details });
}

function describeEnd({ state, signal, exitCode, startedAt }: OnceRecord): string {
  const how =
    state === "started"
      ? "the process that ran it died"
      : signal === null
        ? `the command exited with ${exitCode}`
        : `the command was killed by ${signal}`;
  return `${how} (started at ${startedAt})`;
}

function notBegunError({ key }: OnceRequest, paths: OncePaths, { stderr }: CommandEnd): LazarusError {
  const reason = stderr.head.trim().split("\n")[0] ?? "";
  return new LazarusError(
    "DISK_IO",
    `${quoted(key)} was not started: its pid file cannot be written: ${reason}`,
    {
      hint: `df -h ${shellWord(paths.directory)}, then run the same command again`,
      details: { key, record: paths.record },
    },
  );
}

/** Reports the exit code now: it is not recorded anywhere. */
function notRecordedError(
  { key }: OnceRequest,
  paths: OncePaths,
  end: CommandEnd,
  cause: unknown,
): LazarusError {
  const ran = `${quoted(key)} ran and exited with ${end.exitCode}, which could not be recorded`;
  const { code, message } = asLazarusError(cause, ran, paths.directory);
  return new LazarusError(code, message, {
    hint: `df -h ${shellWord(paths.directory)}; its outcome now counts as unknown: --retry-unknown runs it again`,
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
