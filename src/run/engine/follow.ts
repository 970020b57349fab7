// Follows a run: streams it from its beginning, whichever process executes it, even if that process dies. A follower may not
// act. As UI messages, a run is one message: its calls of the loop follow each other in one stream, which ends when the run
// ends or waits for an answer from a human.
import {
  createUIMessageStream,
  createUIMessageStreamResponse,
  pipeUIMessageStreamToResponse,
  type UIMessageChunk,
} from "ai";
import { type LoadedRun, loadRun, type RunLog, timeOf } from "../log/run-log.ts";
import { openApprovals } from "../operations/approve.ts";
import { type Loop, replayParameters, stream } from "./loop.ts";
import type { Settings } from "./seam.ts";
import { readSession, replaySegment, type Session, type SessionOptions, segmentsOf } from "./session.ts";

type ToUI = (options: Settings) => AsyncIterable<UIMessageChunk>;

/** The last call of the loop so far. */
interface Followed {
  readonly session: Session;
  readonly result: Settings;
  readonly toUI: ToUI;
}

/** The SDK's result for a run; its UI streams contain all of it. */
export async function follow(
  loop: Loop,
  log: RunLog,
  runId: string,
  options: SessionOptions,
): Promise<Settings> {
  const open = async (loaded: LoadedRun): Promise<Followed> => {
    const session = await readSession(log, loaded, options);
    const result = await stream(loop, session, {}, {});
    return { session, result, toUI: result.toUIMessageStream };
  };
  const first = await open((await loadRun(log, runId))!);
  const ui = ({ onError, generateMessageId, originalMessages, ...given }: Settings = {}) => {
    const { onStepEnd, onStepFinish, onEnd, onFinish, sendStart, sendFinish, ...parts } = given;
    return createUIMessageStream({
      ...{ onStepEnd, onStepFinish, onEnd, onFinish, originalMessages },
      ...(onError === undefined ? {} : { onError }),
      generateId: generateMessageId ?? (() => runId),
      execute: ({ writer }) => {
        const left = new AbortController();
        const chunks = uiChunks(loop, first, open, { ...parts, onError }, left.signal);
        const isSent = ({ type }: UIMessageChunk) =>
          type === "start" ? sendStart !== false : type !== "finish" || sendFinish !== false;
        writer.merge(streamOf(chunks, isSent, left));
      },
    });
  };
  return Object.assign(first.result, {
    toUIMessageStream: ui,
    toUIMessageStreamResponse: (given: Settings = {}) =>
      createUIMessageStreamResponse({ ...given, stream: ui(given) }),
    pipeUIMessageStreamToResponse: (response: Settings, given: Settings = {}) =>
      pipeUIMessageStreamToResponse({ ...given, response: response as never, stream: ui(given) }),
  });
}

/**
 * The result of a call of the loop for a tool that streams a child run and expects one message: its UI streams contain the
 * earlier calls too.
 */
export async function withEarlierCalls(
  loop: Loop,
  { run, segments }: Session,
  result: Settings,
  options: SessionOptions,
): Promise<Settings> {
  if (segments.length === 1) return result;
  const whole = await follow(loop, run.log, run.id, options);
  const { toUIMessageStream, toUIMessageStreamResponse, pipeUIMessageStreamToResponse } = whole;
  return Object.assign(result, {
    toUIMessageStream,
    toUIMessageStreamResponse,
    pipeUIMessageStreamToResponse,
  });
}

/** The chunks of all calls of the loop, as those of one message. */
async function* uiChunks(
  loop: Loop,
  first: Followed,
  open: (loaded: LoadedRun) => Promise<Followed>,
  options: Settings,
  left: AbortSignal,
): AsyncGenerator<UIMessageChunk> {
  let finish: UIMessageChunk | undefined;
  let isFirst = true;
  async function* partOf(toUI: ToUI): AsyncGenerator<UIMessageChunk> {
    for await (const chunk of toUI(options)) {
      if (chunk.type === "finish") finish = chunk;
      else if (chunk.type !== "start" || isFirst) yield chunk;
      isFirst = false;
    }
  }
  const { log } = first.session.run;
  for (const segment of first.session.segments.slice(0, -1)) {
    const replay = replaySegment(log, first.session, segment);
    const result = await loop.stream(replay, await replayParameters(loop, first.session, segment, replay));
    yield* partOf((given) => result.toUIMessageStream(given));
  }
  let followed: Followed | undefined = first;
  while (followed !== undefined) {
    const { run, segments } = followed.session as Session;
    left.addEventListener("abort", () => run.stop.abort(left.reason), { once: true });
    yield* partOf(followed.toUI);
    const next = await nextCall(log, run.id, segments.length, left);
    followed = next && (await open(next));
  }
  if (finish !== undefined) yield finish;
}

/** Waits for another call of the loop; undefined when the run has ended or waits for a human. */
async function nextCall(
  log: RunLog,
  runId: string,
  known: number,
  left: AbortSignal,
): Promise<LoadedRun | undefined> {
  while (!left.aborted) {
    const loaded = await loadRun(log, runId);
    if (loaded === undefined) return undefined;
    if (segmentsOf(loaded.entries).length > known) return loaded;
    const { status, seq } = loaded.head;
    if (status === "waiting") {
      if (openApprovals(await log.journal.readWaits(runId), timeOf(log)).length > 0) return undefined;
    } else if (status !== "running" && status !== "queued") return undefined;
    await log.journal.changed(runId, seq, left);
  }
  return undefined;
}

function streamOf(
  chunks: AsyncGenerator<UIMessageChunk>,
  isSent: (chunk: UIMessageChunk) => boolean,
  left: AbortController,
): ReadableStream<UIMessageChunk> {
  return new ReadableStream({
    async pull(controller) {
      for (;;) {
        const { done, value } = await chunks.next();
        if (done) return controller.close();
        if (isSent(value)) return controller.enqueue(value);
      }
    },
    cancel: (reason) => left.abort(reason),
  });
}
