// What a tool of a durable run can do besides its work: name its effect, divide itself into steps that are not repeated,
// sleep, and wait for messages. A run that sleeps or waits gives up its lease and its memory; when it is due, the tool is
// called again and its finished steps return what they returned before.
import { AsyncLocalStorage } from "node:async_hooks";
import { LazarusError } from "../../platform/errors.ts";
import { PARTS_PER_CALL, type WaitRow } from "../journal/journal.ts";
import { isStorable } from "../log/codec.ts";
import { type EffectValue, type Entry, entryOf } from "../log/entry.ts";
import { readInbox } from "../log/run-log.ts";
import { thrownText } from "../model/thrown.ts";
import type { EffectClass } from "../model/types.ts";
import { parkCalls, type RunningEffect } from "./ledger.ts";
import { changed, type LiveRun } from "./live-run.ts";

/** A tool call in progress. */
export interface Scope {
  readonly run: LiveRun;
  readonly effect: RunningEffect;
  readonly entry: Entry;
  /** Number of steps, sleeps and waits so far. */
  parts: number;
  /** Number of child runs so far. */
  children: number;
  /** Called when the call stops working until something happens. */
  suspend(wait: WaitRow): Promise<never>;
  /** Ends the work on the call; what it awaits never comes. */
  leave(): Promise<never>;
}

const scopes = new AsyncLocalStorage<Scope>();

/** Runs `work` inside a tool call. */
export function inScope<T>(scope: Scope, work: () => T): T {
  return scopes.run(scope, work);
}

/** The tool call that is in progress here, if any. */
export function currentScope(): Scope | undefined {
  return scopes.getStore();
}

/** Inside a tool: its effect. The id is the same over any number of resumes: pass it on as an idempotency key. */
export function currentEffect(): RunningEffect | undefined {
  return scopes.getStore()?.effect;
}

function requireScope(what: string): Scope {
  const scope = scopes.getStore();
  if (scope !== undefined) return scope;
  throw new LazarusError("USAGE", `${what} works only inside a tool of a durable run`, {
    hint: "call it from a tool's execute function",
  });
}

/** The next part of a call, and its entry if it is recorded. */
function nextPart({ run, entry, ...scope }: Scope, position: number, name: string) {
  const call = entry.call * PARTS_PER_CALL + position;
  const key = { step: entry.step, kind: "part", call } as const;
  const old = run.get(key.step, "part", call);
  if (old !== undefined && old.name !== name) {
    throw changed(run.id, `part ${position} of ${scope.effect.id} was ${old.name} and is now ${name}`);
  }
  return { key, old };
}

/** How a step may be repeated; default `once`. */
export interface StepOptions {
  readonly effect?: Exclude<EffectClass, "reconcile" | "nested">;
}

/**
 * Inside a tool: does one thing and records its result, so that a repeated call of the tool does not do it again. A step of
 * class `once` whose outcome is unknown makes the effect of its tool unknown.
 */
export async function step<T>(
  name: string,
  work: () => Promise<T> | T,
  options: StepOptions = {},
): Promise<T> {
  const scope = requireScope("step()");
  const { run } = scope;
  const { key, old } = nextPart(scope, scope.parts++, name);
  const value = (old?.value ?? {}) as EffectValue;
  if (old?.state === "done") return value.output as T;
  if (old?.state === "failed") throw value.thrown ?? new Error(value.error);
  const { effect: effectClass = "once" } = options;
  // A call that a human or a sleep has set back to `prepared` may do again what was interrupted.
  const interrupted = old?.state === "started" && scope.entry.attempts > 1 && !wasPrepared(scope);
  if (interrupted && effectClass === "once") {
    const reason = `its step ${name} was started and its outcome is unknown`;
    parkCalls(run, [{ entry: scope.entry, reason }]);
    return scope.leave();
  }
  const attempts = (old?.attempts ?? 0) + 1;
  const started = entryOf(key, undefined, {
    state: "started",
    attempts,
    name,
    class: effectClass,
    startedMs: run.now(),
  });
  if (effectClass === "read") run.keep(started);
  else await run.write(started, "full");
  try {
    const output = await work();
    await run.write({ ...started, state: "done", endedMs: run.now(), value: { output } }, "full");
    return output;
  } catch (error) {
    if (run.stop.signal.aborted) throw error;
    const thrown = isStorable(error) ? { thrown: error } : {};
    const failure = { error: thrownText(error, name), ...thrown };
    await run.write({ ...started, state: "failed", endedMs: run.now(), value: failure }, "full");
    throw error;
  }
}

/** Whether the call was set back before it started again. */
function wasPrepared({ entry }: Scope): boolean {
  return (entry.value as { retried?: boolean } | undefined)?.retried === true;
}

/** Inside a tool: continues at a time, or after so many milliseconds. The time is recorded once. */
export async function sleep(until: Date | number): Promise<void> {
  const scope = requireScope("sleep()");
  const { run } = scope;
  const { key, old } = nextPart(scope, scope.parts++, "sleep");
  if (old?.state === "done") return;
  const dueMs = old?.dueMs ?? Math.ceil(until instanceof Date ? until.getTime() : run.now() + until);
  const entry = entryOf(key, undefined, { state: "started", name: "sleep", dueMs, startedMs: run.now() });
  if (old === undefined) run.keep(entry, "full");
  const wait = waitRow(scope, key.call, { kind: "sleep", names: [], dueMs });
  if (dueMs > run.now() && !wasWoken(scope, wait)) {
    if (dueMs - run.now() > inlineMs(run)) return scope.suspend(wait);
    await run.recorder!.flush();
    await run.log.machine.clock.sleep(dueMs - run.now(), run.stop.signal);
  }
  if (run.stop.signal.aborted) throw run.stop.signal.reason;
  run.keep({ ...entry, state: "done", endedMs: run.now() });
}

/** A message that a run was sent. */
export interface Message {
  readonly id: string;
  readonly name: string;
  readonly value: unknown;
}

/**
 * Inside a tool: waits for a message with one of these names, also for one that was sent before. Undefined after
 * `timeoutMs`.
 */
export async function waitFor(
  names: string | readonly string[],
  timeoutMs?: number,
): Promise<Message | undefined> {
  const scope = requireScope("waitFor()");
  const { run } = scope;
  const wanted = typeof names === "string" ? [names] : [...names];
  const title = `wait for ${wanted.join(", ")}`;
  const { key, old } = nextPart(scope, scope.parts++, title);
  if (old?.state === "done") return (old.value as EffectValue).output as Message | undefined;
  const dueMs = old?.dueMs ?? (timeoutMs === undefined ? null : Math.ceil(run.now() + timeoutMs));
  const entry = entryOf(key, undefined, { state: "started", name: title, dueMs, startedMs: run.now() });
  if (old === undefined) run.keep(entry, "full");
  const wait = waitRow(scope, key.call, { kind: "signal", names: wanted, dueMs });
  const message = (await readInbox(run.log, run.id)).find(({ name }) => wanted.includes(name));
  const isOver = (dueMs !== null && dueMs <= run.now()) || wasWoken(scope, wait);
  if (message === undefined && !isOver) return scope.suspend(wait);
  run.recorder!.take(message === undefined ? [] : [message.id]);
  run.recorder!.wait({ ...wait, state: message === undefined ? "expired" : "answered" });
  await run.write({ ...entry, state: "done", endedMs: run.now(), value: { output: message } }, "full");
  return message;
}

/** Whether a human has ended the wait before its time. */
function wasWoken({ run }: Scope, { id }: WaitRow): boolean {
  return run.waits.get(id)?.state === "answered";
}

/** Sleeps that end before the lease would have to be renewed are not worth giving it up. */
function inlineMs({ log }: LiveRun): number {
  return log.leaseMs / 3;
}

function waitRow({ entry }: Scope, call: number, wait: Pick<WaitRow, "kind" | "names" | "dueMs">): WaitRow {
  return {
    id: `${wait.kind}.${entry.step}.${call}`,
    step: entry.step,
    call,
    state: "open",
    digest: null,
    answer: null,
    ...wait,
  };
}

/** Thrown by `generate` when a run sleeps or waits. It continues when it is due: `recover()`, in any process. */
export class RunSuspended extends LazarusError {
  readonly runId: string;
  /** When it is due at the latest; null: only a message wakes it. */
  readonly wakeMs: number | null;

  constructor(runId: string, wakeMs: number | null) {
    const until = wakeMs === null ? "a message" : new Date(wakeMs).toISOString();
    super("RUN_WAITING", `run ${runId} waits for ${until}`, { hint: `lazarus runs show ${runId}` });
    this.runId = runId;
    this.wakeMs = wakeMs;
  }
}

/** Suspends calls: once no call is in progress any more, the run stops and waits. */
export function createSuspender(run: LiveRun): {
  suspend(entry: Entry, wait: WaitRow): void;
  settled(): void;
} {
  const waits: WaitRow[] = [];
  return {
    suspend(entry, wait) {
      run.recorder!.wait(wait);
      run.waits.set(wait.id, wait);
      // Nothing is unknown about a call that waits: it goes on from its finished steps.
      run.keep({ ...entry, state: "prepared", value: { ...(entry.value as object), retried: true } }, "full");
      waits.push(wait);
    },
    settled() {
      if (waits.length === 0 || run.inFlight.size > 0) return;
      const due = waits.flatMap(({ dueMs }) => (dueMs === null ? [] : [dueMs]));
      run.halt(new RunSuspended(run.id, due.length === 0 ? null : Math.min(...due)));
    },
  };
}
