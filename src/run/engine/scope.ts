// What a tool of a durable run can do besides its work: name its effect, divide itself into steps that are not repeated,
// sleep, and wait for messages. A run that sleeps or waits releases its lease and memory; when it is due, the tool is
// called again and its finished steps return the recorded results.
import { AsyncLocalStorage } from "node:async_hooks";
import { LazarusError } from "../../platform/errors.ts";
import { PARTS_PER_CALL, type WaitRow } from "../journal/journal.ts";
import { isStorable } from "../log/codec.ts";
import { type EffectValue, type Entry, entryOf } from "../log/entry.ts";
import { readInbox } from "../log/run-log.ts";
import { checkStep } from "../model/check-options.ts";
import { thrownText } from "../model/thrown.ts";
import type { EffectClass } from "../model/types.ts";
import { parkCalls, type RunningEffect } from "./ledger.ts";
import { type LiveRun, never } from "./live-run.ts";
import { storable } from "./plain-data.ts";

/** A tool call in progress. */
export interface Scope {
  readonly run: LiveRun;
  readonly effect: RunningEffect;
  readonly entry: Entry;
  /** Number of steps, sleeps and waits so far. */
  parts: number;
  /** Number of child runs so far. */
  children: number;
  /** Child runs that the call streams. */
  readonly streams: Set<LiveRun>;
  /** A human decided that this attempt may repeat what earlier ones left unfinished. */
  readonly retried: boolean;
  /** `left`: suspended or parked; it must do nothing more. */
  state: "running" | "left" | "ended";
  /** Parts in progress, by their entry or wait. */
  readonly busy: Set<object>;
  /** What the call waits for, and the steps that wait with it. */
  readonly suspended: { readonly wait: WaitRow; readonly within: readonly Entry[] }[];
  /** Called when nothing is busy. */
  readonly onIdle: (() => void)[];
  /** Suspends the call until something happens. */
  suspend(): void;
  /** Abandons the call: the promise never resolves. */
  leave(): Promise<never>;
}

/** A place in the code of a tool: its call, and the steps around it. */
export interface ToolPlace {
  readonly scope: Scope;
  readonly within: readonly Entry[];
}

const places = new AsyncLocalStorage<ToolPlace>();

/** Runs `work` inside a tool call. */
export function inScope<T>(scope: Scope, work: () => T): T {
  return places.run({ scope, within: [] }, work);
}

/** The place in a tool where this is called, if any. */
export function currentPlace(): ToolPlace | undefined {
  return places.getStore();
}

/** The tool call that is in progress here, if any. */
export function currentScope(): Scope | undefined {
  return places.getStore()?.scope;
}

/** Inside a tool: its effect. The id is the same over any number of resumes: pass it on as an idempotency key. */
export function currentEffect(): RunningEffect | undefined {
  return currentScope()?.effect;
}

function requireScope(what: string): ToolPlace {
  const here = places.getStore();
  if (here !== undefined) return here;
  throw new LazarusError("USAGE", `${what} works only inside a tool of a durable run`, {
    hint: "call it from a tool's execute function",
  });
}

/**
 * The next part of a call, and its entry if it is recorded. A promise if the call must not continue: it has left, or its
 * parts differ from the recorded ones and a human has to decide. Nothing may happen between this and the start of the part.
 */
function nextPart(scope: Scope, name: string) {
  if (scope.state === "left") return never();
  const { run, entry } = scope;
  const position = scope.parts++;
  const call = entry.call * PARTS_PER_CALL + position;
  const key = { step: entry.step, kind: "part", call } as const;
  const old = run.get(key.step, "part", call);
  if (old === undefined || old.name === name) return { key, old };
  return park(scope, `its part ${position + 1} was "${old.name}" and is now "${name}"`);
}

/** Stops the run until a human has decided about the call. */
export function park(scope: Scope, reason: string): Promise<never> {
  parkCalls(scope.run, [{ entry: scope.entry, reason }]);
  return scope.leave();
}

/** Counts a part as busy until it has ended or waits. */
export async function whileBusy<T>(scope: Scope, token: object, work: () => Promise<T>): Promise<T> {
  scope.busy.add(token);
  try {
    return await work();
  } finally {
    rest(scope, [token]);
  }
}

function rest({ busy, onIdle }: Scope, tokens: readonly object[]): void {
  for (const token of tokens) busy.delete(token);
  if (busy.size === 0) for (const resume of onIdle.splice(0)) resume();
}

/** Suspends the call once its other steps have ended, so that their outcomes are known. `token` counts it as busy until then. */
export async function suspend(at: ToolPlace, wait: WaitRow, token: object = wait): Promise<never> {
  const { scope, within } = at;
  scope.suspended.push({ wait, within });
  rest(scope, [token, ...within]);
  while (scope.busy.size > 0) {
    await new Promise<void>((resume) => scope.onIdle.push(resume));
    // First let the code that waited for the last step run: the call may return, or start another step.
    await new Promise(setImmediate);
  }
  if (scope.state === "running") scope.suspend();
  return never();
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
  const { scope, within } = requireScope("step()");
  const { run } = scope;
  const { effect: effectClass = "once" } = options;
  checkStep(name, effectClass);
  const part = nextPart(scope, name);
  if (part instanceof Promise) return part;
  const { key, old } = part;
  const value = (old?.value ?? {}) as EffectValue;
  if (old?.state === "done") return value.output as T;
  if (old?.state === "failed") throw value.thrown ?? new Error(value.error);
  // After a resume they may start in another order, and each would get the other's result.
  if ([...scope.busy].some((busy) => isStep(busy) && busy.name === name && !within.includes(busy)))
    throw sameName(name);
  // A step that waited with its call is `prepared` again.
  const interrupted = old?.state === "started" && scope.entry.attempts > 1 && !scope.retried;
  if (interrupted && effectClass === "once")
    return park(scope, `its step ${name} was started and its outcome is unknown`);
  const attempts = (old?.attempts ?? 0) + 1;
  const started = entryOf(key, undefined, {
    state: "started",
    attempts,
    name,
    class: effectClass,
    startedMs: run.now(),
  });
  return whileBusy(scope, started, async () => {
    if (effectClass === "read") run.keep(started);
    else await run.write(started, "full");
    return places.run({ scope, within: [...within, started] }, () => finishStep(run, started, work));
  });
}

function isStep(busy: object): busy is Entry {
  return "kind" in busy && busy.kind === "part";
}

function sameName(name: string): LazarusError {
  return new LazarusError(
    "USAGE",
    `step ${JSON.stringify(name)} was started while another step of that name is running; it was not run`,
    { hint: "give steps that run at the same time distinct names" },
  );
}

async function finishStep<T>(run: LiveRun, started: Entry, work: () => Promise<T> | T): Promise<T> {
  let output: T;
  try {
    output = storable(run, started, await work()) as T;
  } catch (error) {
    if (run.stop.signal.aborted) throw error;
    const thrown = isStorable(error) ? { thrown: error } : {};
    const failure = { error: thrownText(error, started.name!), ...thrown };
    await run.write({ ...started, state: "failed", endedMs: run.now(), value: failure }, "full");
    throw error;
  }
  // What is returned now is what a repeated call will get.
  await run.write({ ...started, state: "done", endedMs: run.now(), value: { output } }, "full");
  return output;
}

/** Inside a tool: sleeps until a time, or for a number of milliseconds. The time is recorded once. */
export async function sleep(until: Date | number): Promise<void> {
  const here = requireScope("sleep()");
  const { scope } = here;
  const { run } = scope;
  const asked = timeAt(until instanceof Date ? until.getTime() : after(run, until), "sleep()");
  const part = nextPart(scope, "sleep");
  if (part instanceof Promise) return part;
  const { key, old } = part;
  if (old?.state === "done") return;
  const dueMs = old?.dueMs ?? asked;
  const entry = entryOf(key, undefined, { state: "started", name: "sleep", dueMs, startedMs: run.now() });
  if (old === undefined) run.keep(entry, "full");
  const wait = waitRow(scope, key.call, { kind: "sleep", names: [], dueMs });
  if (dueMs > run.now() && !wasWoken(scope, wait)) {
    if (dueMs - run.now() > inlineMs(run)) return suspend(here, wait);
    await run.recorder!.flush();
    await run.log.machine.clock.sleep(dueMs - run.now(), run.stop.signal);
  }
  if (run.stop.signal.aborted) throw run.stop.signal.reason;
  run.keep({ ...entry, state: "done", endedMs: run.now() });
}

function after(run: LiveRun, ms: unknown): number {
  return typeof ms === "number" ? run.now() + ms : Number.NaN;
}

/** The largest time that a Date can hold. */
const MAX_TIME_MS = 8.64e15;

/** A time that can be stored and printed. One in the past ends the sleep immediately. */
function timeAt(ms: number, what: string): number {
  if (Math.abs(ms) <= MAX_TIME_MS) return Math.ceil(ms);
  throw new LazarusError("USAGE", `${what} was given a time that is not a valid number or date`, {
    hint: "give milliseconds from now, or a Date to sleep()",
  });
}

/** A message that a run was sent. */
export interface Message {
  readonly id: string;
  readonly name: string;
  readonly value: unknown;
}

/**
 * Inside a tool: waits for a message with one of these names, including one that was sent before. Undefined after
 * `timeoutMs`; Infinity is no limit.
 */
export async function waitFor(
  names: string | readonly string[],
  timeoutMs?: number,
): Promise<Message | undefined> {
  const here = requireScope("waitFor()");
  const { scope } = here;
  const { run } = scope;
  const hasLimit = timeoutMs !== undefined && timeoutMs !== Number.POSITIVE_INFINITY;
  const asked = hasLimit ? timeAt(after(run, timeoutMs), "waitFor()") : null;
  const wanted = typeof names === "string" ? [names] : [...names];
  const title = `wait for ${wanted.join(", ")}`;
  const part = nextPart(scope, title);
  if (part instanceof Promise) return part;
  const { key, old } = part;
  if (old?.state === "done") return (old.value as EffectValue).output as Message | undefined;
  const dueMs = old === undefined ? asked : old.dueMs;
  const entry = entryOf(key, undefined, { state: "started", name: title, dueMs, startedMs: run.now() });
  if (old === undefined) run.keep(entry, "full");
  const wait = waitRow(scope, key.call, { kind: "signal", names: wanted, dueMs });
  return whileBusy(scope, wait, async () => {
    const message = (await readInbox(run.log, run.id)).find(({ name }) => wanted.includes(name));
    const isOver = (dueMs !== null && dueMs <= run.now()) || wasWoken(scope, wait);
    if (message === undefined && !isOver) return suspend(here, wait);
    run.recorder!.take(message === undefined ? [] : [message.id]);
    run.recorder!.wait({ ...wait, state: message === undefined ? "expired" : "answered" });
    await run.write({ ...entry, state: "done", endedMs: run.now(), value: { output: message } }, "full");
    return message;
  });
}

/** Whether a human has ended the wait before its time. */
function wasWoken({ run }: Scope, { id }: WaitRow): boolean {
  return run.waits.get(id)?.state === "answered";
}

/** Sleeps that end before the lease would have to be renewed are not worth giving it up. */
function inlineMs({ log }: LiveRun): number {
  return log.leaseMs / 3;
}

/** A wait of a call that has not been answered. */
export function waitRow(
  { entry }: Scope,
  call: number,
  wait: Pick<WaitRow, "kind" | "names" | "dueMs">,
): WaitRow {
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
    const date = new Date(wakeMs ?? Number.NaN);
    const until = Number.isNaN(date.getTime()) ? "a message or an answer" : date.toISOString();
    super("RUN_WAITING", `run ${runId} waits for ${until}`, { hint: `lazarus runs show ${runId}` });
    this.runId = runId;
    this.wakeMs = wakeMs;
  }
}

/** Suspends calls: once no call is in progress any more, the run stops and waits. */
export function createSuspender(run: LiveRun): { suspend(scope: Scope): void; stopIfIdle(): void } {
  const waits: WaitRow[] = [];
  return {
    suspend({ entry, retried, suspended }) {
      for (const { wait, within } of suspended) {
        run.recorder!.wait(wait);
        run.waits.set(wait.id, wait);
        waits.push(wait);
        // It may have ended in the meantime.
        const open = within.filter(({ step, call }) => run.get(step, "part", call)?.state === "started");
        for (const step of open) run.keep({ ...step, state: "prepared" }, "full");
      }
      // A call that waits has no unknown outcome, and neither have the steps that wait in it: it resumes after its finished steps.
      const kept = retried ? { retried } : {};
      run.keep({ ...entry, state: "prepared", value: { ...(entry.value as object), ...kept } }, "full");
    },
    stopIfIdle() {
      if (waits.length === 0 || run.inFlight.size > 0) return;
      const due = waits.flatMap(({ dueMs }) => (dueMs === null ? [] : [dueMs]));
      run.halt(new RunSuspended(run.id, due.length === 0 ? null : Math.min(...due)));
    },
  };
}
