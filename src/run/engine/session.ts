// Opens and closes runs around the SDK's loop. A run is one or more calls of the loop: the first with the caller's input,
// each further one with the answers to what the call before it asked a human. Everything that a process needs to continue
// is in the journal; earlier calls are replayed, without callbacks, to get their messages.
import { LazarusError } from "../../platform/errors.ts";
import type { HeadRow, WaitRow } from "../journal/journal.ts";
import { type Entry, entryOf } from "../log/entry.ts";
import { errorOf } from "../log/read.ts";
import {
  beginRun,
  claimRun,
  findHead,
  type LoadedRun,
  loadRun,
  type NewRun,
  openAnswer,
  type RunLog,
  timeOf,
} from "../log/run-log.ts";
import { decideOutcome, type Ending, restoredError, storedError } from "../model/outcome.ts";
import type { Lease } from "../model/types.ts";
import { changed, LiveRun, type ResponseCall } from "./live-run.ts";
import { Recorder } from "./recorder.ts";
import { callsOf, itemsOf, type RecordedResponse } from "./response.ts";
import { RunSuspended } from "./scope.ts";

/** What begins a call of the loop. */
export interface StoredInput {
  readonly mode: "generate" | "stream";
  /** The caller's parameters that are plain data: prompt, messages, options, timeout. */
  readonly call: Readonly<Record<string, unknown>>;
  /** The phase of an executor's run; -1 before the first one. Absent in the runs of durable agents. */
  readonly phase?: number;
  /** How many of the messages of an executor's run are its input; the others are the prompt of the phase. */
  readonly given?: number;
}

/** A human's answer to a request for approval. */
export interface Approval {
  readonly approvalId: string;
  readonly approved: boolean;
  readonly reason?: string;
  /** What the client sent with it about other calls of the step. */
  readonly sent?: readonly object[];
}

/** One call of the loop. */
export interface Segment {
  readonly position: number;
  /** The last step before it. */
  readonly base: number;
  /** Its last step; undefined while it is the last call. */
  readonly limit: number | undefined;
  readonly input: StoredInput | undefined;
  readonly approvals: readonly Approval[];
}

/** An open run. */
export interface Session {
  readonly run: LiveRun;
  readonly loaded: LoadedRun;
  readonly segments: readonly Segment[];
  readonly lease: Lease | undefined;
}

/** How to open a run. */
export interface SessionOptions {
  readonly graceMs: number;
  readonly serial?: boolean;
  readonly throttleMs?: number | undefined;
  readonly onWriteFailed?: ((error: unknown) => void) | undefined;
  /** For `readSession`: see `LiveRunOptions`. */
  readonly recordedOnly?: boolean;
}

const active = new WeakMap<object, Map<string, LiveRun>>();

/** The runs that this process is executing, by id. */
export function activeRuns({ journal }: RunLog): Map<string, LiveRun> {
  let runs = active.get(journal);
  if (runs === undefined) {
    runs = new Map();
    active.set(journal, runs);
  }
  return runs;
}

/** The entry that begins a run. */
export function inputEntry(input: StoredInput): Entry {
  return entryOf({ step: 0, kind: "input", call: 0 }, { input });
}

/** Begins a run. Throws RUN_ID_TAKEN. */
export async function beginSession(
  log: RunLog,
  run: NewRun,
  input: StoredInput,
  options: SessionOptions,
): Promise<Session> {
  const entry = inputEntry(input);
  const { lease, head } = await beginRun(log, run, [entry]);
  return openLoaded(log, { head, entries: [entry] }, lease, [], options);
}

/**
 * Claims a run, unless its queue has already given it to this process (`claimed`), and continues it. Throws RUN_BUSY when
 * another process or call is executing it.
 */
export async function resumeSession(
  log: RunLog,
  head: HeadRow,
  options: SessionOptions,
  claimed?: Lease,
): Promise<Session> {
  if (activeRuns(log).has(head.id)) throw busy(head.id, "this process is executing it");
  const lease = claimed ?? (await claimRun(log, head));
  if (lease === undefined) throw busy(head.id, `${head.owner ?? "another process"} is executing it`);
  const loaded = await loadRun(log, head.id);
  if (loaded === undefined) throw busy(head.id, "it has been deleted");
  return continueSession(log, lease, loaded, options);
}

/** Continues a run that this process has claimed. */
export async function continueSession(
  log: RunLog,
  lease: Lease,
  loaded: LoadedRun,
  options: SessionOptions,
): Promise<Session> {
  const waits = await log.journal.readWaits(loaded.head.id);
  const session = openLoaded(log, loaded, lease, waits, options);
  const approvals = answeredApprovals(log, session);
  if (approvals === undefined) return session;
  // The answers begin another call of the loop.
  const position = session.segments.length;
  const entry = entryOf({ step: loaded.head.step, kind: "input", call: position }, { approvals });
  await session.run.write(entry, "full");
  session.run.recorder!.stop();
  const entries = [...loaded.entries, entry];
  const seq = loaded.head.seq + 1;
  return openLoaded(log, { head: { ...loaded.head, seq }, entries }, lease, waits, options);
}

/** A session that may not act: for followers, and for runs that have ended. */
export async function readSession(log: RunLog, loaded: LoadedRun, options: SessionOptions): Promise<Session> {
  return openLoaded(log, loaded, undefined, await log.journal.readWaits(loaded.head.id), options);
}

function openLoaded(
  log: RunLog,
  loaded: LoadedRun,
  lease: Lease | undefined,
  waits: readonly WaitRow[],
  options: SessionOptions,
): Session {
  const segments = segmentsOf(loaded.entries);
  const recorder = lease && new Recorder(log, lease, loaded.head);
  const last = segments.at(-1)!;
  const run = new LiveRun({ ...options, log, ...loaded, waits, recorder, base: last.base });
  approveCalls(run, last);
  if (recorder !== undefined) activeRuns(log).set(run.id, run);
  return { run, loaded, segments, lease };
}

/** A run that replays an earlier call of the loop, without writing. */
export function replaySegment(log: RunLog, { loaded, run }: Session, segment: Segment): LiveRun {
  const waits = [...run.waits.values()];
  const { base, limit } = segment;
  const replay = new LiveRun({ log, ...loaded, waits, base, limit, graceMs: run.graceMs });
  approveCalls(replay, segment);
  return replay;
}

/** The calls of the loop, from the entries of a run. Pure. */
export function segmentsOf(entries: readonly Entry[]): Segment[] {
  const inputs = entries.filter(({ kind }) => kind === "input").sort((a, b) => a.call - b.call);
  return inputs.map(({ step, value }, position) => {
    const { input, approvals = [] } = value as { input?: StoredInput; approvals?: Approval[] };
    return { position, base: step, limit: inputs[position + 1]?.step, input, approvals };
  });
}

/** The only calls that an approval may run are those that the journal holds: same call, same tool, same input. */
function approveCalls(run: LiveRun, { approvals }: Segment): void {
  for (const { approvalId, approved } of approvals) {
    const wait = run.waits.get(approvalId);
    const call = wait && waitingCall(run, wait);
    if (approved && wait && call) run.approved.set(call.callId, { ...call, approved: wait.digest });
  }
}

/** The call that an approval is for. */
function waitingCall(run: LiveRun, wait: WaitRow): ResponseCall | undefined {
  const recorded = run.get(wait.step, "response")?.value as RecordedResponse | undefined;
  if (recorded === undefined) return undefined;
  return callsOf(wait.step, itemsOf(recorded)).find(({ call }) => call === wait.call);
}

/** The answers to the last call's requests, once each has an answer or is overdue. */
function answeredApprovals(log: RunLog, { run, segments }: Session): Approval[] | undefined {
  const { base } = segments.at(-1)!;
  const asked = [...run.waits.values()].filter(({ kind, step }) => kind === "approval" && step > base);
  if (asked.length === 0) return undefined;
  const nowMs = timeOf(log);
  const answers = asked.map((wait): Approval | undefined => {
    if (wait.state === "answered")
      return { approvalId: wait.id, ...(openAnswer(log, run.id, wait) as object) } as Approval;
    const isOver = wait.state !== "open" || (wait.dueMs !== null && wait.dueMs <= nowMs);
    return isOver ? { approvalId: wait.id, approved: false, reason: "not answered in time" } : undefined;
  });
  return answers.every((answer) => answer !== undefined) ? answers : undefined;
}

/** How a run ended or paused. */
export interface RunOutcome {
  readonly runId: string;
  readonly status: HeadRow["status"] | "shutdown" | "interrupted";
  readonly error: unknown;
}

/** Records how the loop ended. A suspended run waits, a request for approval too; every other end is decided in outcome.ts. */
export async function closeSession(
  run: LiveRun,
  ending: Ending,
  waits: readonly WaitRow[] = [],
): Promise<RunOutcome> {
  const { recorder } = run;
  const runId = run.id;
  if (recorder === undefined) return followedOutcome(run, ending);
  run.isOpen = false;
  const error = ending.kind === "threw" ? ending.error : null;
  const outcome = decideOutcome(ending, runId);
  // Before anything else: a tool that streams this run reads it.
  if (error instanceof RunSuspended) run.paused = { wakeMs: error.wakeMs };
  else if (outcome.status === "needs-human") run.paused = { wakeMs: null };
  else if (error === null && waits.length > 0) run.paused = { wakeMs: earliest(waits) };
  await run.drain();
  try {
    if (run.paused !== undefined && outcome.status !== "needs-human") {
      for (const wait of waits) recorder.wait(wait);
      await recorder.close({ status: "waiting", ...run.paused });
      return { runId, status: "waiting", error };
    }
    const { closing } = outcome;
    if (closing === undefined) recorder.stop();
    else if (closing.status === "interrupted") await recorder.close({});
    else {
      const output = "output" in closing ? closing.output : null;
      const stored = closing.error ?? null;
      await recorder.close({ status: closing.status, output, error: stored });
    }
    return { runId, status: outcome.status, error: outcome.error };
  } finally {
    recorder.stop();
    activeRuns(run.log).delete(runId);
  }
}

/** How a run that another process executes, or did, has ended or paused. */
async function followedOutcome(run: LiveRun, ending: Ending): Promise<RunOutcome> {
  const { log, id: runId } = run;
  const head = await findHead(log, runId);
  if (head === undefined) {
    const error = ending.kind === "threw" ? ending.error : changed(runId, "it has been deleted");
    return { runId, status: "failed", error };
  }
  const { status, wakeMs } = head;
  if (status === "waiting") run.paused = { wakeMs };
  const stored = errorOf(log, head);
  return { runId, status, error: stored && restoredError(stored) };
}

function earliest(waits: readonly WaitRow[]): number | null {
  const due = waits.flatMap(({ dueMs }) => (dueMs === null ? [] : [dueMs]));
  return due.length === 0 ? null : Math.min(...due);
}

function busy(runId: string, problem: string): LazarusError {
  return new LazarusError("RUN_BUSY", `run ${runId} cannot be continued: ${problem}`, {
    hint: `follow it: agent.follow("${runId}")`,
  });
}

export { changed, storedError };
