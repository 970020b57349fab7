// The tools of a durable run: copies whose `execute` goes through the ledger, otherwise unchanged. Callbacks of a
// tool are not called while earlier steps are replayed, and `needsApproval` decides once.
import type { Tool, ToolExecutionOptions, ToolSet } from "ai";
import { LazarusError } from "../../platform/errors.ts";
import { inputDigest } from "../model/ledger.ts";
import type { EffectClass } from "../model/types.ts";
import { streamsWaitingChild } from "./child.ts";
import { decideOnce } from "./decisions.ts";
import {
  type Begun,
  beginCall,
  CallHalted,
  failCall,
  finishCall,
  type LedgerTool,
  type Reconciliation,
  withGrace,
} from "./ledger.ts";
import { type LiveRun, never, type ResponseCall } from "./live-run.ts";
import { copyOf } from "./plain-data.ts";
import { createSuspender, currentScope, inScope, type Scope, step } from "./scope.ts";

/** How calls of a tool may be repeated, or a function that finds out whether one happened. */
export type EffectRule<INPUT = never> =
  | Exclude<EffectClass, "reconcile">
  | { reconcile(effectId: string, input: INPUT): Promise<Reconciliation> | Reconciliation };

/** Called around each call that really happens; the executor watches here. */
export interface ToolHooks {
  started?(name: string): void;
  ended?(name: string, effectId: string, error?: unknown): void;
}

type Execute = (input: unknown, options: ToolExecutionOptions<unknown>) => unknown;
type AnyTool = Tool & { execute?: Execute };

/** Tools whose calls go through the ledger of `run`. */
export function durableTools<TOOLS extends ToolSet | undefined>(
  tools: TOOLS,
  run: LiveRun,
  effects: Readonly<Record<string, EffectRule>>,
  hooks: ToolHooks = {},
): TOOLS {
  if (tools === undefined) return tools;
  const suspender = createSuspender(run);
  const wrapped = Object.entries(tools).map(([name, tool]) => {
    const rule = Object.hasOwn(effects, name) ? effects[name]! : "once";
    const ledgerTool: LedgerTool =
      typeof rule === "string"
        ? { name, class: rule }
        : { name, class: "reconcile", reconcile: rule.reconcile };
    return [name, durableTool(tool as AnyTool, { run, tool: ledgerTool, suspender, hooks })];
  });
  return Object.fromEntries(wrapped) as TOOLS;
}

interface Context {
  readonly run: LiveRun;
  readonly tool: LedgerTool;
  readonly suspender: ReturnType<typeof createSuspender>;
  readonly hooks: ToolHooks;
}

const CALLBACKS = ["onInputStart", "onInputDelta", "onInputAvailable"] as const;

function durableTool(tool: AnyTool, context: Context): AnyTool {
  const { run } = context;
  // A copy that keeps the prototype and symbols: MCP, dynamic and provider tools keep their kind.
  const copy = Object.create(Object.getPrototypeOf(tool), Object.getOwnPropertyDescriptors(tool));
  const set = (name: string, value: unknown) =>
    Object.defineProperty(copy, name, { value, enumerable: true, configurable: true, writable: true });
  const { execute, needsApproval } = tool;
  if (typeof execute === "function") {
    const bound = execute.bind(tool);
    set(
      "execute",
      isGenerator(execute)
        ? (input: unknown, options: ToolExecutionOptions<unknown>) =>
            streamCall(context, bound, input, options)
        : (input: unknown, options: ToolExecutionOptions<unknown>) => runCall(context, bound, input, options),
    );
  }
  if (typeof needsApproval === "function") {
    set("needsApproval", (input: unknown, options: Parameters<typeof needsApproval>[1]) =>
      decideOnce(run, "needs", options.toolCallId, () => needsApproval.call(tool, input, options)),
    );
  }
  for (const name of CALLBACKS) {
    const callback = tool[name] as ((event: never) => unknown) | undefined;
    if (callback !== undefined)
      set(name, (event: never) => (run.isPast ? undefined : callback.call(tool, event)));
  }
  return copy;
}

function isGenerator(execute: Execute): boolean {
  return Object.prototype.toString.call(execute) === "[object AsyncGeneratorFunction]";
}

/** The place of a call. A call that a tool makes of another tool is a step of that tool. Any other unknown call is refused. */
function findPlace({ run, tool }: Context, callId: string, input: unknown): ResponseCall | undefined {
  const place = run.placeOf(callId, "execute");
  const isOwn = place !== undefined && place.tool === tool.name;
  if (isOwn && isApproved(run, place, input)) return place;
  if (!isOwn && currentScope()?.run === run) return undefined;
  const error = new LazarusError(
    "RUN_APPROVAL_INVALID",
    `run ${run.id}: call ${JSON.stringify(callId)} of ${tool.name} was neither made by the model nor approved with this input; it was not run`,
    { hint: `lazarus runs show ${run.id}` },
  );
  run.halt(error);
  throw error;
}

/** An approval is for one input. One that contained a secret differs from what is stored; the ledger does not run it. */
function isApproved(run: LiveRun, { step, approved }: ResponseCall, input: unknown): boolean {
  return approved == null || approved === inputDigest(input) || run.get(step, "response")?.redacted === true;
}

async function runCall(
  context: Context,
  execute: Execute,
  input: unknown,
  options: ToolExecutionOptions<unknown>,
): Promise<unknown> {
  const { run, tool } = context;
  const place = findPlace(context, options.toolCallId, input);
  if (place === undefined) {
    const { class: effectClass } = tool;
    const repeatable = effectClass === "read" || effectClass === "idempotent" ? effectClass : "once";
    // The input is part of the name: calls of one tool that run at the same time must not get each other's results.
    const name = `call ${tool.name} ${inputDigest(input).slice(0, 8)}`;
    return step(name, () => execute(input, options), { effect: repeatable });
  }
  const turn = takeTurn(run, place, tool.class === "read");
  return track(context, async () => {
    await turn.ready;
    for (;;) {
      const begun = await beginCall(run, tool, place, input);
      if (begun.how === "known") return begun.output;
      const { effect, entry } = begun;
      const { scope, left } = scopeOf(context, begun);
      context.hooks.started?.(tool.name);
      try {
        const called = Promise.resolve().then(() => inScope(scope, () => execute(copyOf(input), options)));
        const started = untilEnded(scope, called, () => true);
        const output = await withGrace(run, Promise.race([started, left]), tool.class !== "read");
        if (isAsyncIterable(output)) throw iterableError(tool.name);
        const told = await finishCall(run, entry, output);
        context.hooks.ended?.(tool.name, effect.id);
        return told;
      } catch (error) {
        endScope(scope);
        context.hooks.ended?.(tool.name, effect.id, error);
        if (error instanceof CallHalted || !(await failCall(run, entry, error))) throw error;
      }
    }
  })
    .finally(turn.done)
    .catch(orNever);
}

/** A generator's body runs in the context of each `next()`, not of its call, so every one of them enters the scope. */
async function* streamCall(
  context: Context,
  execute: Execute,
  input: unknown,
  options: ToolExecutionOptions<unknown>,
) {
  const { run, tool } = context;
  const place = findPlace(context, options.toolCallId, input);
  if (place === undefined) throw iterableError(tool.name);
  const ended = Promise.withResolvers<void>();
  const tracked = track(context, () => ended.promise);
  try {
    for (;;) {
      const begun = await beginCall(run, tool, place, input);
      if (begun.how === "known") {
        yield begun.output;
        return;
      }
      const { scope, left } = scopeOf(context, begun);
      context.hooks.started?.(tool.name);
      let last: unknown;
      try {
        const iterator = execute(copyOf(input), options) as AsyncGenerator<unknown>;
        for (;;) {
          const asked = Promise.resolve(inScope(scope, () => iterator.next()));
          const next = untilEnded(scope, asked, ({ done }) => done === true);
          const { done, value } = await withGrace(run, Promise.race([next, left]), tool.class !== "read");
          if (done) break;
          last = value;
          yield value;
        }
        await finishCall(run, begun.entry, last);
        context.hooks.ended?.(tool.name, begun.effect.id);
        return;
      } catch (error) {
        endScope(scope);
        context.hooks.ended?.(tool.name, begun.effect.id, error);
        if (error instanceof CallHalted || !(await failCall(run, begun.entry, error))) throw error;
      }
    }
  } catch (error) {
    ended.resolve();
    await orNever(error);
  } finally {
    ended.resolve();
    await tracked;
  }
}

/** A halted call never ends for the SDK, whose loop has been abandoned. */
function orNever(error: unknown): Promise<never> {
  return error instanceof CallHalted ? never() : Promise.reject(error);
}

function scopeOf(
  { run, suspender }: Context,
  { effect, entry, retried }: Extract<Begun, { how: "run" }>,
): { scope: Scope; left: Promise<never> } {
  const left = Promise.withResolvers<never>();
  left.promise.catch(() => {});
  const leave = () => {
    scope.state = "left";
    left.reject(new CallHalted());
    return never();
  };
  const suspend = () => {
    suspender.suspend(scope);
    void leave();
  };
  const scope: Scope = {
    ...{ run, effect, entry, retried, suspend, leave },
    ...{
      parts: 0,
      children: 0,
      streams: new Set(),
      state: "running",
      busy: new Set(),
      suspended: [],
      onIdle: [],
    },
  };
  return { scope, left: left.promise };
}

/** Notes that a call has ended; never resolves if a child that it streamed waits, because then the call also waits. */
async function untilEnded<T>(scope: Scope, work: Promise<T>, isEnd: (value: T) => boolean): Promise<T> {
  const end = async () => {
    if (scope.state !== "ended" && streamsWaitingChild(scope)) await never();
    endScope(scope);
  };
  try {
    const value = await work;
    if (isEnd(value)) await end();
    return value;
  } catch (error) {
    await end();
    throw error;
  }
}

/** A call that has ended can no longer be suspended by what it left running. */
function endScope(scope: Scope): void {
  if (scope.state === "running") scope.state = "ended";
}

/** Counts a call as in progress until it has ended. */
function track<T>({ run, suspender }: Context, work: () => Promise<T>): Promise<T> {
  const call = work();
  run.inFlight.add(call);
  const end = () => {
    run.inFlight.delete(call);
    suspender.stopIfIdle();
  };
  call.then(end, end);
  return call;
}

const turns = new WeakMap<LiveRun, { step: number; all: Promise<void>; effects: Promise<void> }>();

/** In a serial run, an effect waits for all calls before it, and a read for the effects before it. */
function takeTurn(
  run: LiveRun,
  place: ResponseCall,
  isRead: boolean,
): { ready: Promise<void>; done: () => void } {
  if (!run.serial) return { ready: Promise.resolve(), done: () => {} };
  const before = turns.get(run);
  const state =
    before?.step === place.step
      ? before
      : { step: place.step, all: Promise.resolve(), effects: Promise.resolve() };
  const { promise, resolve } = Promise.withResolvers<void>();
  const ready = isRead ? state.effects : state.all;
  const all = Promise.all([state.all, promise]).then(() => {});
  turns.set(run, { step: place.step, all, effects: isRead ? state.effects : all });
  return { ready, done: resolve };
}

function isAsyncIterable(value: unknown): boolean {
  return typeof value === "object" && value !== null && Symbol.asyncIterator in value;
}

function iterableError(name: string): LazarusError {
  return new LazarusError(
    "RUN_UNSUPPORTED",
    `tool ${name} returns an async iterable from a function that is not an async generator; a durable run cannot tell in advance`,
    { hint: "declare it as async *execute(…)" },
  );
}
