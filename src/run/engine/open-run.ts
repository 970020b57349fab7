// Decides what a call to a durable agent means: a new run, another call with the id of a known one, the answer to a request
// for approval, or a child of the run whose tool makes the call.
import type { ModelMessage } from "ai";
import { LazarusError } from "../../platform/errors.ts";
import { isEnded } from "../journal/head.ts";
import { encodeRecord, encodeValue } from "../log/codec.ts";
import { errorOf } from "../log/read.ts";
import { enqueueRun, findHead, type LoadedRun, loadRun, type RunLog } from "../log/run-log.ts";
import { createRunId, invalidRunId, isRunId } from "../model/run-id.ts";
import type { Lease } from "../model/types.ts";
import { acceptApprovals, claimedApprovals, ownerOf } from "./approvals.ts";
import type { Child } from "./child.ts";
import { changed } from "./live-run.ts";
import { type ClaimedRun, waitForSlot } from "./queue.ts";
import { park, RunSuspended } from "./scope.ts";
import type { Settings } from "./seam.ts";
import {
  beginSession,
  inputEntry,
  readSession,
  resumeSession,
  type Session,
  type SessionOptions,
  type StoredInput,
  segmentsOf,
} from "./session.ts";

/** What a call may say about its run. */
export interface RunParameters {
  /** Names the run, so that a repeated call continues it instead of starting another one. Default: a new id. */
  readonly runId?: string | undefined;
  /** Groups the runs of one conversation. */
  readonly thread?: string | undefined;
  /** For whom it runs; queues are fair between callers. */
  readonly caller?: string | undefined;
  /** The run waits until this queue has a slot for it: `setQueue` and `lazarus runs queue` set the limits. */
  readonly queue?: string | undefined;
  /** In a queue, higher first. Default 0. */
  readonly priority?: number | undefined;
  /** An abort of the caller's signal ends the call, not the run. Default false: the run stops and can be resumed. */
  readonly detach?: boolean | undefined;
}

/** What every run of an agent has in common. */
export interface RunKind extends SessionOptions {
  readonly agentId: string;
  /** Digest of the agent's definition. */
  readonly definition: string;
  /** What to do when the agent has changed since a run began. */
  readonly onChange: "continue" | "pin" | "refuse";
  /** Id of the model, for limits of a queue. */
  readonly model?: string | null;
  /** Continues a run of this agent that is ahead of the caller's in the queue. */
  readonly work?: (claimed: ClaimedRun) => void;
}

/** Parameters of a call that are stored; everything else is lost when another process continues. */
const STORED = ["prompt", "messages", "options", "timeout"] as const;

/** Opens the run that a call is about. Inside a tool, that is `child`. */
export async function openRun(
  log: RunLog,
  kind: RunKind,
  mode: StoredInput["mode"],
  { child, ...parameters }: RunParameters & { readonly child?: Child | undefined },
  call: Settings,
): Promise<Session> {
  const { prompt, messages } = call;
  const history = (messages ?? (Array.isArray(prompt) ? prompt : undefined)) as ModelMessage[] | undefined;
  const claimed = claimedApprovals(history);
  if (claimed.length > 0) {
    const { agentId } = kind;
    const { caller } = parameters;
    return continueKnown(
      log,
      kind,
      await acceptApprovals(log, claimed, { agentId, caller, history: history! }),
    );
  }
  const input = storedInput(mode, call);
  const given = parameters.runId ?? child?.id;
  const runId = given ?? newRunId(log);
  // Ids of child runs are known, but not chosen by a caller.
  if (parameters.runId !== undefined && !isRunId(runId) && !(await isKnown(log, runId))) {
    throw invalidRunId(runId);
  }
  const known = given === undefined ? undefined : await loadRun(log, runId);
  refuseCaller(known, parameters);
  if (known !== undefined) return continueCalled(log, kind, known, input, child);
  if (history === undefined && prompt === undefined) {
    throw new LazarusError("RUN_UNKNOWN", `no run ${JSON.stringify(runId)} in ${log.journal.place}`, {
      hint: "pass a prompt or messages to start one",
    });
  }
  const run = newRun(log, kind, runId, parameters, {
    parentRunId: child?.parent.run.id ?? null,
    messages: history?.length ?? 1,
  });
  try {
    if (run.queue === null) return await beginSession(log, run, input, kind);
    await enqueueRun(log, run, [inputEntry(input)]);
  } catch (error) {
    // Another call has started it at the same time, or the id was used by a run that is gone.
    const taken = isTaken(error) ? await loadRun(log, runId) : undefined;
    if (taken === undefined) throw error;
    refuseCaller(taken, parameters);
    return continueCalled(log, kind, taken, input, child);
  }
  return continueKnown(log, kind, runId);
}

async function isKnown(log: RunLog, runId: unknown): Promise<boolean> {
  return typeof runId === "string" && (await findHead(log, runId)) !== undefined;
}

function isTaken(error: unknown): boolean {
  return error instanceof LazarusError && error.code === "RUN_ID_TAKEN";
}

/** A call that names a run and a caller does not get the run of another one. Nobody chose the id of a child run. */
function refuseCaller(known: LoadedRun | undefined, { runId, caller }: RunParameters): void {
  if (known === undefined || runId === undefined || caller === undefined || known.head.caller === caller)
    return;
  throw new LazarusError("RUN_ID_TAKEN", `run ${known.head.id} ${ownerOf(known.head)}`, {
    hint: "choose another run id",
  });
}

/** Continues the run that a call names, if it has the same input. */
async function continueCalled(
  log: RunLog,
  kind: RunKind,
  known: LoadedRun,
  input: StoredInput,
  child: Child | undefined,
): Promise<Session> {
  const { id, parentRunId } = known.head;
  const isSame = hasInput(known, input);
  // Children that start in another order would get each other's results.
  if (!isSame && child !== undefined) return park(child.parent, `its child run ${id} had another input`);
  if (!isSame) {
    throw new LazarusError("RUN_ID_TAKEN", `run ${id} was started with another input`, {
      hint: "choose another run id, or leave prompt and messages out to continue it",
    });
  }
  const parent = child !== undefined || parentRunId === null ? undefined : await findHead(log, parentRunId);
  if (parent !== undefined && !isEnded(parent.status) && !isEnded(known.head.status)) {
    throw new LazarusError("RUN_BUSY", `run ${id} is a child of run ${parent.id}, which continues it`, {
      hint: `follow it: agent.follow("${id}"), or continue run ${parent.id}`,
    });
  }
  return continueKnown(log, kind, id, known);
}

/** Adds a run to its queue without waiting for it. Throws RUN_ID_TAKEN. */
export async function enqueue(
  log: RunLog,
  kind: RunKind,
  parameters: RunParameters & { readonly queue: string },
  call: Settings,
): Promise<string> {
  const input = storedInput("generate", call);
  const { messages, prompt } = call;
  const history = messages ?? (Array.isArray(prompt) ? prompt : undefined);
  if (claimedApprovals(history).length > 0)
    throw new LazarusError("USAGE", "an answer to a request is not queued");
  const runId = parameters.runId ?? newRunId(log);
  if (!isRunId(runId)) throw invalidRunId(runId);
  const given = { parentRunId: null, messages: history?.length ?? 1 };
  await enqueueRun(log, newRun(log, kind, runId, parameters, given), [inputEntry(input)]);
  return runId;
}

function newRun(
  log: RunLog,
  { agentId, definition, model = null }: RunKind,
  id: string,
  { thread, caller, queue, priority = 0 }: RunParameters,
  given: { readonly parentRunId: string | null; readonly messages: number },
) {
  const groups = { thread: thread ?? null, caller: caller ?? null, queue: queue ?? null };
  const identity = { id, agentId, definition, model, ...groups, priority };
  return { ...identity, ...given, info: infoOf(id, agentId, log) };
}

function infoOf(runId: string, agentId: string, log: RunLog) {
  return { runId, agentId, agentName: agentId, startedAtMs: Math.floor(log.machine.clock.nowMs()) };
}

function newRunId({ machine }: RunLog): string {
  return createRunId(machine, Math.floor(machine.clock.nowMs()));
}

/** Throws RUN_NOT_STORABLE, naming what cannot be stored. */
function storedInput(mode: StoredInput["mode"], call: Settings): StoredInput {
  const kept = STORED.filter((name) => call[name] !== undefined).map((name) => {
    encodeValue(call[name], name);
    return [name, call[name]];
  });
  return { mode, call: Object.fromEntries(kept) };
}

/** Whether a call with the id of a run is the same call again. What was removed as a secret cannot be compared. */
function hasInput({ entries }: LoadedRun, { call }: StoredInput): boolean {
  if (entries.some(({ kind, redacted }) => kind === "input" && redacted)) return true;
  const first = segmentsOf(entries)[0]?.input?.call;
  const text = (value: Settings | undefined) => {
    const { timeout: _, ...asked } = value ?? {};
    return JSON.stringify(encodeRecord(asked));
  };
  return (call.prompt === undefined && call.messages === undefined) || text(call) === text(first);
}

/** Continues a known run: resumes it, or reads it when there is nothing left to do. */
export async function continueKnown(
  log: RunLog,
  kind: RunKind,
  runId: string,
  known?: LoadedRun,
  claimed?: Lease,
): Promise<Session> {
  const loaded = known ?? (await loadRun(log, runId));
  if (loaded === undefined) throw changed(runId, "it has been deleted");
  const { head } = loaded;
  if (head.agentId !== kind.agentId) {
    throw changed(
      runId,
      `it belongs to agent ${JSON.stringify(head.agentId)}, not ${JSON.stringify(kind.agentId)}`,
    );
  }
  if (segmentsOf(loaded.entries)[0]?.input?.phase !== undefined) {
    throw changed(
      runId,
      "an executor started it; resume it there: recoverInterrupted(executor, { agentFor })",
    );
  }
  if (head.status === "needs-human") {
    const stored = errorOf(log, head);
    throw new LazarusError("RUN_NEEDS_HUMAN", stored?.message ?? `run ${runId} needs a human`, {
      hint: stored?.hint ?? `lazarus runs show ${runId}`,
    });
  }
  if (head.status === "waiting" && !isDue(log, head.wakeMs)) {
    const session = await readSession(log, loaded, { ...kind, recordedOnly: true });
    const approvals = [...session.run.waits.values()].filter(
      (wait) => wait.kind === "approval" && wait.state === "open",
    );
    if (approvals.length > 0) return session;
    throw new RunSuspended(runId, head.wakeMs);
  }
  if (!["running", "queued", "waiting"].includes(head.status)) return readSession(log, loaded, kind);
  if (head.definition !== null && head.definition !== kind.definition && kind.onChange !== "continue") {
    throw changed(runId, "its definition has changed since the run started");
  }
  if (head.queue !== null && head.status !== "running") {
    const slot = await waitForSlot(log, head, kind, kind.work ?? (() => {}));
    if (slot !== undefined) return continueKnown(log, kind, runId, undefined, slot.lease);
    // Another process executes it, or did: follow it.
    return readSession(log, (await loadRun(log, runId)) ?? loaded, kind);
  }
  const session = await resumeSession(log, head, kind, claimed);
  if (head.definition !== kind.definition)
    session.run.warn(`the agent has changed since run ${runId} started`);
  return session;
}

function isDue({ machine }: RunLog, wakeMs: number | null): boolean {
  return wakeMs !== null && wakeMs <= machine.clock.nowMs();
}
