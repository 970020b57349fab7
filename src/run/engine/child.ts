// Child runs: what a tool starts with a durable agent, a durable call or an executor. The id of a child is the effect of its call
// and its position there, so that a repeated call finds it. While a child waits, its call also waits: the run releases its
// lease, and what wakes the child wakes the runs above it.
import { LazarusError } from "../../platform/errors.ts";
import { findHead, type RunLog } from "../log/run-log.ts";
import type { LiveRun } from "./live-run.ts";
import {
  currentPlace,
  RunSuspended,
  type Scope,
  suspend,
  type ToolPlace,
  waitRow,
  whileBusy,
} from "./scope.ts";
import type { RunOutcome, Session } from "./session.ts";

/** A call inside a tool, which is or becomes a child run. */
export interface Child {
  readonly id: string;
  readonly parent: Scope;
}

type Open = (child: Child | undefined) => Promise<Session>;

/** Opens a run and works on it until it ends. Inside a tool, does not return while it waits: the call of the tool is repeated. */
export function generateChild<T>(
  log: RunLog,
  runId: string | undefined,
  open: Open,
  work: (session: Session) => Promise<T>,
): Promise<T> {
  return asChild(log, runId, async (child) => {
    const session = await open(child);
    const result = isSuspended(session) && child !== undefined ? undefined : await work(session);
    return { result: result as T, wakeMs: wakeOf(session) };
  });
}

/** Like `generateChild`, for a run that is streamed. When it waits, the call of the tool does not end, even if it has read the stream. */
export async function streamChild<T extends { readonly outcome: Promise<RunOutcome> }>(
  log: RunLog,
  runId: string | undefined,
  open: Open,
  work: (session: Session, isChild: boolean) => Promise<T>,
): Promise<T> {
  const opened = Promise.withResolvers<T>();
  const whole = asChild(log, runId, async (child) => {
    const session = await open(child);
    child?.parent.streams.add(session.run);
    if (isSuspended(session) && child !== undefined) return { result: undefined, wakeMs: wakeOf(session) };
    const result = await work(session, child !== undefined);
    opened.resolve(result);
    // Outside a tool, no call waits for it here.
    if (child !== undefined) await result.outcome.catch(() => {});
    return { result: undefined, wakeMs: wakeOf(session) };
  });
  whole.catch(opened.reject);
  return opened.promise;
}

/** Does `work`, which is about run `runId` or, inside a tool, about its next child. `wakeMs` is undefined unless the run waits. */
export async function asChild<T>(
  log: RunLog,
  runId: string | undefined,
  work: (child: Child | undefined) => Promise<{ result: T; wakeMs: number | null | undefined }>,
): Promise<T> {
  const here = currentPlace();
  if (here === undefined) return (await work(undefined)).result;
  const { scope } = here;
  const id = runId ?? `${scope.effect.id}.${scope.children++}`;
  const child = { id, parent: scope };
  return whileBusy(scope, child, async () => {
    try {
      const { result, wakeMs } = await work(child);
      if (wakeMs !== undefined) return await suspendFor(here, log, child, wakeMs);
      endWait(scope, id);
      return result;
    } catch (error) {
      const wakeMs = await wakeAfter(log, id, error);
      if (wakeMs === undefined) throw error;
      return suspendFor(here, log, child, wakeMs);
    }
  });
}

/** How soon a call checks again on a child that another process executes, or whose store cannot wake it. */
const RECHECK_MS = 10_000;

/** When to check again on a child whose call threw; undefined when it has ended. */
async function wakeAfter(log: RunLog, id: string, error: unknown): Promise<number | null | undefined> {
  if (error instanceof RunSuspended) return error.wakeMs;
  if (!(error instanceof LazarusError)) return undefined;
  if (error.code === "RUN_NEEDS_HUMAN") return null;
  const isElsewhere = error.code === "RUN_BUSY" || error.code === "RUN_STALE_LEASE";
  return isElsewhere && (await findHead(log, id)) !== undefined ? nextCheckMs(log) : undefined;
}

function nextCheckMs(log: RunLog): number {
  return Math.floor(log.machine.clock.nowMs()) + RECHECK_MS;
}

function suspendFor(here: ToolPlace, log: RunLog, child: Child, wakeMs: number | null): Promise<never> {
  const { scope } = here;
  const { journal } = scope.run.log;
  const isSameStore = journal.kind === log.journal.kind && journal.place === log.journal.place;
  const dueMs = isSameStore ? wakeMs : Math.min(wakeMs ?? Number.POSITIVE_INFINITY, nextCheckMs(log));
  const wait = waitRow(scope, scope.entry.call, { kind: "child", names: [child.id], dueMs });
  return suspend(here, { ...wait, id: waitId(child.id) }, child);
}

function waitId(childId: string): string {
  return `child.${childId}`;
}

/** The call no longer waits for a child that has ended. */
function endWait({ run }: Scope, id: string): void {
  const wait = run.waits.get(waitId(id));
  if (wait?.state !== "open" || run.recorder === undefined) return;
  run.recorder.wait({ ...wait, state: "answered" });
  run.waits.set(wait.id, { ...wait, state: "answered" });
}

/** Whether the run waits and nothing has come for it: there is nothing to do. */
function isSuspended({ run, loaded }: Session): boolean {
  return run.isFollower && loaded.head.status === "waiting";
}

function wakeOf(session: Session): number | null | undefined {
  if (session.run.paused !== undefined) return session.run.paused.wakeMs;
  return isSuspended(session) ? session.loaded.head.wakeMs : undefined;
}

/** Whether a call streams a child that waits, or is about to. */
export function streamsWaitingChild({ streams }: Scope): boolean {
  return [...streams].some(isPausing);
}

function isPausing({ haltedBy, paused }: LiveRun): boolean {
  return paused !== undefined || haltedBy instanceof RunSuspended || isParked(haltedBy);
}

function isParked(error: unknown): boolean {
  return error instanceof LazarusError && error.code === "RUN_NEEDS_HUMAN";
}
