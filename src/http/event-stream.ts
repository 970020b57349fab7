// Server-sent events from the event log. A client is a position in the log, not a queue: events are read from the registry
// when the client can take more, so a slow client costs no memory. A client that reads nothing for `stallTimeoutMs` is
// disconnected; it reconnects with Last-Event-ID and misses nothing.
import type { Clock } from "../platform/clock.ts";
import type { Event } from "../registry/registry.ts";
import type { PitPort } from "./port.ts";

export interface StreamRequest {
  readonly source: Pick<PitPort, "events" | "subscribe">;
  readonly clock: Clock;
  /** Send events after this sequence number. */
  readonly afterSeq: number;
  readonly mission?: string | undefined;
  /** Ends the stream: the client disconnected, or the pit shuts down. */
  readonly signal: AbortSignal;
  /** Called when the client is disconnected for reading nothing, to close its connection. */
  readonly onDropped?: () => void;
  readonly limits?: Partial<StreamLimits>;
}

export interface StreamLimits {
  /** Poll interval for events of other processes. */
  readonly pollMs: number;
  /** Interval of comments, which keep idle connections open. */
  readonly commentMs: number;
  readonly stallTimeoutMs: number;
  readonly pageEvents: number;
}

/** Number of checks within `stallTimeoutMs` for whether the client has read something. */
const CHECKS = 4;

const DEFAULTS: StreamLimits = { pollMs: 1000, commentMs: 15_000, stallTimeoutMs: 30_000, pageEvents: 100 };

export function streamEvents(request: StreamRequest): ReadableStream<Uint8Array> {
  const { source, clock, mission, signal } = request;
  const { pollMs, commentMs, stallTimeoutMs, pageEvents } = { ...DEFAULTS, ...request.limits };
  const encoder = new TextEncoder();
  const ended = new AbortController();
  let cursor = request.afterSeq;
  let newEvents = new AbortController();
  let commentAtMs = clock.monotonicMs() + commentMs;
  /** Since when a chunk has been waiting for the client. */
  let waitingSinceMs: number | undefined;
  const unsubscribe = source.subscribe(() => newEvents.abort());
  const end = () => {
    if (ended.signal.aborted) return;
    ended.abort();
    newEvents.abort();
    unsubscribe();
    signal.removeEventListener("abort", end);
  };
  signal.addEventListener("abort", end);
  if (signal.aborted) end();

  const nextChunk = async (): Promise<string | undefined> => {
    while (!ended.signal.aborted) {
      // Created before reading, so that an event during the read ends the sleep.
      newEvents = new AbortController();
      const page = source.events({ mission, afterSeq: cursor, first: pageEvents });
      const last = page.at(-1);
      if (last !== undefined) {
        cursor = last.seq;
        return page.map(formatEvent).join("");
      }
      const remainingMs = commentAtMs - clock.monotonicMs();
      if (remainingMs <= 0) return ":\n\n";
      await clock.sleep(Math.min(pollMs, remainingMs), newEvents.signal);
    }
    return undefined;
  };

  // Count checks instead of time: while this process is suspended, no client can read.
  const watch = async (controller: ReadableStreamDefaultController<Uint8Array>) => {
    let checks = 0;
    let seen: number | undefined;
    while (!ended.signal.aborted) {
      await clock.sleep(stallTimeoutMs / CHECKS, ended.signal);
      checks = waitingSinceMs === seen ? checks + 1 : 0;
      seen = waitingSinceMs;
      if (seen === undefined || checks < CHECKS) continue;
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
        const chunk = await nextChunk();
        if (chunk === undefined) return controller.close();
        controller.enqueue(encoder.encode(chunk));
        waitingSinceMs = clock.monotonicMs();
        commentAtMs = waitingSinceMs + commentMs;
      },
      cancel: end,
    },
    { highWaterMark: 1 },
  );
}

/** JSON.stringify emits no line breaks, so one data line is enough. */
export function formatEvent(event: Event): string {
  return `id: ${event.seq}\nevent: ${event.kind}\ndata: ${JSON.stringify(event)}\n\n`;
}
