// Drives one call of the SDK's loop for an open run and records how it ended. `Loop` is the SDK itself: an agent, or
// generateText and streamText.
import type { ModelMessage } from "ai";
import { findHead, readInbox } from "../log/run-log.ts";
import { answerParts } from "../log/transcript.ts";
import { RunStopped } from "../model/stop.ts";
import { MESSAGE } from "../operations/send.ts";
import { requestedApprovals } from "./approvals.ts";
import type { LiveRun } from "./live-run.ts";
import type { RunParameters } from "./open-run.ts";
import { liveCallbacks, type Settings } from "./seam.ts";
import { closeSession, type RunOutcome, replaySegment, type Segment, type Session } from "./session.ts";
import { durableSteering, type Mailbox } from "./steering.ts";

/** The SDK's loop with the seams of a run in place. */
export interface Loop {
  generate(run: LiveRun, call: Settings): Promise<Settings>;
  stream(run: LiveRun, call: Settings): Promise<Settings> | Settings;
}

/** How a call is driven. */
export interface LoopOptions {
  /** How long a request for approval can be answered. Default: no limit. */
  readonly approvalMs?: number | undefined;
  readonly detach?: RunParameters["detach"];
}

/** Runs the loop to its end and returns the SDK's result. */
export async function generate(
  loop: Loop,
  session: Session,
  call: Settings,
  options: LoopOptions,
): Promise<Settings> {
  const { run } = session;
  const watch = watchRun(run);
  const caller = bindAbort(run, call.abortSignal, options.detach);
  try {
    const parameters = await callParameters(loop, session, call, watch.mailbox);
    const work = loop.generate(run, { ...parameters, abortSignal: caller.signal });
    work.catch(() => {});
    const whole = Promise.race([work, run.halted]).then(
      async (result) => {
        await closeFinished(run, result.finalStep, options);
        return result;
      },
      async (error) => {
        await closeSession(run, { kind: "threw", error: endingError(run, error, caller) });
        throw error;
      },
    );
    whole.catch(() => {}).finally(watch.stop);
    const result = await Promise.race([whole, caller.gone]);
    return Object.assign(result, { runId: run.id });
  } catch (error) {
    if (!caller.left) await abandon(run, error, watch.stop);
    throw error;
  }
}

/** Starts the loop and returns the SDK's result; the stream is drained even if the caller does not read it. */
export async function stream(
  loop: Loop,
  session: Session,
  call: Settings,
  options: LoopOptions,
): Promise<Settings> {
  const { run } = session;
  const watch = watchRun(run);
  const caller = bindAbort(run, call.abortSignal, options.detach);
  let closing: Promise<RunOutcome> | undefined;
  try {
    const parameters = await callParameters(loop, session, call, watch.mailbox);
    const { onFinish, onEnd = onFinish } = parameters;
    const result = await loop.stream(run, {
      ...parameters,
      abortSignal: caller.signal,
      onFinish: undefined,
      onEnd: async (event: Settings) => {
        closing = closeFinished(run, event.finalStep, options);
        await closing.catch((error) => run.halt(error));
        await onEnd?.(event);
      },
    });
    const outcome = drain(result.fullStream)
      .then(
        (error) => closing ?? closeSession(run, { kind: "threw", error: endingError(run, error, caller) }),
      )
      .finally(watch.stop);
    outcome.catch(() => {});
    return withStableId(Object.assign(result, { runId: run.id, outcome }), run);
  } catch (error) {
    await abandon(run, error, watch.stop);
    throw error;
  }
}

/** A loop that failed before it started. */
async function abandon(run: LiveRun, error: unknown, stop: () => void): Promise<void> {
  stop();
  if (run.recorder === undefined || !run.isOpen) return;
  await closeSession(run, { kind: "threw", error });
}

async function closeFinished(run: LiveRun, last: Settings, { approvalMs }: LoopOptions): Promise<RunOutcome> {
  const dueMs = approvalMs === undefined ? null : run.now() + approvalMs;
  const waits = run.isFollower ? [] : requestedApprovals(run, last?.content ?? [], dueMs);
  return closeSession(run, { kind: "finished", output: last?.text ?? "" }, waits);
}

/** The parameters of the call: the caller's callbacks, and the recorded input. */
async function callParameters(
  loop: Loop,
  session: Session,
  call: Settings,
  mailbox: Mailbox,
): Promise<Settings> {
  const { run, segments } = session;
  const { prompt: _, messages: __, experimental_steering: steering, ...rest } = call;
  const input = await inputOf(loop, session, segments.at(-1)!);
  return {
    ...rest,
    ...liveCallbacks(rest, run),
    ...input,
    experimental_steering: durableSteering(run, mailbox, steering),
  };
}

/** The parameters that repeat an earlier call of the loop. */
export async function replayParameters(
  loop: Loop,
  session: Session,
  segment: Segment,
  replay: LiveRun,
): Promise<Settings> {
  return {
    ...(await inputOf(loop, session, segment)),
    abortSignal: replay.stop.signal,
    experimental_steering: durableSteering(replay, { messages: [] }, undefined),
  };
}

/** The input of a call of the loop: of the first one as stored, of a later one what came before it and the answers. */
export async function inputOf(loop: Loop, session: Session, segment: Segment): Promise<Settings> {
  if (segment.input !== undefined) return { ...segment.input.call };
  const before = session.segments[segment.position - 1]!;
  const replay = replaySegment(session.run.log, session, before);
  const call = await replayParameters(loop, session, before, replay);
  // Generate or stream, as the run did: the SDK requests ids in a different order in the other mode.
  const { mode } = session.segments[0]!.input!;
  const work = mode === "stream" ? streamed(await loop.stream(replay, call)) : loop.generate(replay, call);
  work.catch(() => {});
  const { responseMessages } = await Promise.race([work, replay.halted]);
  const { prompt, messages, abortSignal: _, experimental_steering: __, ...rest } = call;
  const answers = newParts(answerParts(segment.approvals), responseMessages);
  const asked = messages ?? (typeof prompt === "string" ? [{ role: "user", content: prompt }] : prompt);
  return {
    ...rest,
    messages: [...asked, ...responseMessages, { role: "tool", content: answers } as unknown as ModelMessage],
  };
}

/** Without results of calls that have one: a client repeats those that it was told. */
function newParts(parts: readonly Settings[], before: readonly ModelMessage[]): Settings[] {
  const known = new Set(before.flatMap(({ content }): unknown[] => partsOf(content).map(resultId)));
  return parts.filter((part) => resultId(part) === undefined || !known.has(resultId(part)));
}

function partsOf(content: unknown): readonly Settings[] {
  return Array.isArray(content) ? content : [];
}

function resultId({ type, toolCallId }: Settings): unknown {
  return type === "tool-result" ? toolCallId : undefined;
}

async function streamed(result: Settings): Promise<Settings> {
  const [, responseMessages] = await Promise.all([result.consumeStream(), result.responseMessages]);
  return { responseMessages };
}

/** Reads a stream to its end; returns the error that ended it, if any. */
async function drain(parts: AsyncIterable<Settings>): Promise<unknown> {
  let failure: unknown;
  try {
    for await (const part of parts) {
      if (part.type === "error") failure ??= part.error;
      if (part.type === "abort") failure ??= new RunStopped("shutdown", "the caller aborted");
    }
  } catch (error) {
    failure ??= error;
  }
  return failure ?? new Error("the stream ended without a result");
}

interface Caller {
  readonly signal: AbortSignal;
  /** Rejects when a detached caller aborts. */
  readonly gone: Promise<never>;
  /** Whether the caller's signal has aborted. */
  readonly aborted: boolean;
  readonly left: boolean;
}

/** A caller's abort stops the loop and leaves the run to be resumed; of a detached call it ends only the waiting. */
function bindAbort(run: LiveRun, signal: AbortSignal | undefined, detach = false): Caller {
  const gone = Promise.withResolvers<never>();
  gone.promise.catch(() => {});
  const state = { left: false };
  if (signal !== undefined) {
    const abort = () => {
      if (!detach) return run.stop.abort(new RunStopped("shutdown", "the caller aborted"));
      state.left = true;
      gone.reject(signal.reason);
    };
    if (signal.aborted) abort();
    else signal.addEventListener("abort", abort, { once: true });
  }
  return {
    signal: signal === undefined || detach ? run.stop.signal : AbortSignal.any([signal, run.stop.signal]),
    gone: gone.promise,
    get aborted() {
      return signal?.aborted === true && !detach;
    },
    get left() {
      return state.left;
    },
  };
}

/** Why the loop ended, as the record sees it. */
function endingError(run: LiveRun, error: unknown, caller: Caller): unknown {
  if (run.haltedBy !== undefined) return run.haltedBy;
  if (caller.aborted) return new RunStopped("shutdown", "the caller aborted");
  if (error instanceof Error && error.name === "TimeoutError")
    return new RunStopped("timeout", error.message);
  return error;
}

/** How long to wait before reading again from a store that could not be read. */
const RETRY_MS = 1000;

/** Takes messages from the inbox, and notices requests to cancel. */
export function watchRun(run: LiveRun): { mailbox: Mailbox; stop: () => void } {
  const mailbox: Mailbox = { messages: [] };
  const ended = new AbortController();
  const seen = new Set<string>();
  const look = async () => {
    const head = await findHead(run.log, run.id);
    if (head?.cancelMs != null) run.halt(new RunStopped("cancelled", "the run was cancelled"));
    for (const { id, name, value } of await readInbox(run.log, run.id)) {
      if (name !== MESSAGE || seen.has(id)) continue;
      seen.add(id);
      mailbox.messages.push({ id, inboxId: id, message: value as never });
    }
  };
  const watch = async () => {
    while (!ended.signal.aborted) {
      // Subscribe before reading, so that nothing is missed in between.
      const signalled = run.log.journal.signalled(run.id, ended.signal);
      const seen = await look().then(
        () => true,
        () => false,
      );
      await signalled.catch(() => {});
      // A store that cannot be read, or was closed, is read again later.
      if (!seen) await run.log.machine.clock.sleep(RETRY_MS, ended.signal);
    }
  };
  if (run.recorder !== undefined) void watch();
  return { mailbox, stop: () => ended.abort() };
}

/** Every UI stream of this run has the same message id. */
function withStableId(result: Settings, run: LiveRun): Settings {
  for (const name of ["toUIMessageStream", "toUIMessageStreamResponse", "pipeUIMessageStreamToResponse"]) {
    const original = result[name]?.bind(result);
    if (original === undefined) continue;
    const at = name.startsWith("pipe") ? 1 : 0;
    result[name] = (...given: Settings[]) => {
      const options = { generateMessageId: () => run.id, ...given[at] };
      return at === 0 ? original(options) : original(given[0], options);
    };
  }
  return result;
}
