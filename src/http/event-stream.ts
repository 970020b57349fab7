// Server-sent events straight from the event log. A client is a position in the log, not a queue: what it missed is read
// again from the registry when it asks for more, so a slow client costs the pit no memory. One that takes nothing for
// `patienceMs` is let go; it comes back with Last-Event-ID and misses nothing.
import type { Clock } from "../platform/clock.ts";
import type { Event } from "../registry/registry.ts";
import type { PitPort } from "./port.ts";

export interface StreamRequest {
  readonly source: Pick<PitPort, "events" | "subscribe">;
  readonly clock: Clock;
  /** Events after this number are sent. */
  readonly afterSeq: number;
  readonly mission?: string | undefined;
  /** Ends the stream: the client left, or the pit shuts down. */
  readonly signal: AbortSignal;
  /** Called when the client was let go, so that its connection can be cut. */
  readonly onDropped?: () => void;
  readonly limits?: Partial<StreamLimits>;
}

export interface StreamLimits {
  /** Events that other processes enter are found at this pace. */
  readonly pollMs: number;
  /** A comment at this pace keeps connections open and shows that they are. */
  readonly commentMs: number;
  readonly patienceMs: number;
  readonly pageEvents: number;
}

/** So often within its patience a stream looks whether the client has taken something. */
const LOOKS = 4;

const DEFAULTS: StreamLimits = { pollMs: 1000, commentMs: 15_000, patienceMs: 30_000, pageEvents: 100 };

export function streamEvents(request: StreamRequest): ReadableStream<Uint8Array> {
  const { source, clock, mission, signal } = request;
  const { pollMs, commentMs, patienceMs, pageEvents } = { ...DEFAULTS, ...request.limits };
  const encoder = new TextEncoder();
  const over = new AbortController();
  let cursor = request.afterSeq;
  let news = new AbortController();
  let commentAtMs = clock.monotonicMs() + commentMs;
  /** Since when a piece waits for the client to take it. */
  let waitingSinceMs: number | undefined;
  const unsubscribe = source.subscribe(() => news.abort());
  const end = () => {
    if (over.signal.aborted) return;
    over.abort();
    news.abort();
    unsubscribe();
    signal.removeEventListener("abort", end);
  };
  signal.addEventListener("abort", end);
  if (signal.aborted) end();

  const nextPiece = async (): Promise<string | undefined> => {
    while (!over.signal.aborted) {
      // Before the look, so that what happens during it is not slept over.
      news = new AbortController();
      const page = source.events({ mission, afterSeq: cursor, first: pageEvents });
      const last = page.at(-1);
      if (last !== undefined) {
        cursor = last.seq;
        return page.map(formatEvent).join("");
      }
      const leftMs = commentAtMs - clock.monotonicMs();
      if (leftMs <= 0) return ":\n\n";
      await clock.sleep(Math.min(pollMs, leftMs), news.signal);
    }
    return undefined;
  };

  // Looks are counted, not the time between them: while this process stands still, no client can take anything.
  const watch = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    let looks = 0;
    let seen: number | undefined;
    while (!over.signal.aborted) {
      await clock.sleep(patienceMs / LOOKS, over.signal);
      looks = waitingSinceMs === seen ? looks + 1 : 0;
      seen = waitingSinceMs;
      if (seen === undefined || looks < LOOKS) continue;
      end();
      controller.close();
      request.onDropped?.();
    }
  };

  return new ReadableStream<Uint8Array>(
    {
      start(controller) {
        controller.enqueue(encoder.encode("retry: 1000\n\n"));
        waitingSinceMs = clock.monotonicMs();
        void watch(controller);
      },
      async pull(controller) {
        waitingSinceMs = undefined;
        const piece = await nextPiece();
        if (piece === undefined) return controller.close();
        controller.enqueue(encoder.encode(piece));
        waitingSinceMs = clock.monotonicMs();
        commentAtMs = waitingSinceMs + commentMs;
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  );
}

/** JSON has no line breaks of its own, so one data line is enough. */
export function formatEvent(event: Event): string {
  return `id: ${event.seq}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
}
