// Server-sent events: replay, then live; a client that never reads is disconnected and uses no memory.
import { connect } from "node:net";
import { afterAll, beforeAll, describe, expect, it, vi } from "vitest";
import { formatEvent, streamEvents } from "../../src/http/event-stream.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { openRegistry } from "../../src/registry/registry.ts";
import { startTestServer, type TestServer } from "./test-server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startTestServer({ streamLimits: { pollMs: 50, commentMs: 200, stallTimeoutMs: 1500 } });
});
afterAll(() => server[Symbol.asyncDispose]());

const append = (n: number) =>
  server.pitContext.recordEvent({ kind: "start", mission: n % 2 ? "odd" : "even", data: { n } });

/** Reads the stream until `enough` returns true; `onOpen` is called once its position in the log is fixed. */
async function listen(
  path: string,
  headers: Record<string, string>,
  enough: (text: string) => boolean,
  onOpen = () => {},
) {
  const leave = new AbortController();
  const response = await server.ask(path, { headers, signal: leave.signal });
  expect(response.headers.get("content-type")).toBe("text/event-stream");
  onOpen();
  let text = "";
  for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    // Stop only between events; a comment follows soon.
    if (chunk.endsWith("\n\n") && enough(text)) break;
  }
  leave.abort();
  return [...text.matchAll(/^data: (.*)$/gm)].map(([, json]) => JSON.parse(json!));
}

describe("the stream of events", () => {
  it("replays events after Last-Event-ID and continues live, each event once and in order", async () => {
    for (let n = 1; n <= 250; n += 1) append(n);
    const live = setInterval(() => append(++extra), 20);
    let extra = 250;
    const seen = await listen("/v1/events", { "last-event-id": "3" }, (text) => text.includes('"n":255'));
    clearInterval(live);
    const numbers = seen.map(({ seq }) => seq);
    expect(numbers[0]).toBe(4);
    expect(numbers).toEqual(numbers.map((_, i) => i + 4));
  });

  it("starts now by default, after a number given in the query, and can be limited to one mission", async () => {
    const now = await listen(
      "/v1/events",
      {},
      (text) => text.includes('"n":9001'),
      () => append(9001),
    );
    expect(now.map(({ data }) => data.n)).toEqual([9001]);
    const odd = await listen("/v1/events?after=0&mission=odd", {}, (text) => text.includes('"n":9001'));
    expect(new Set(odd.map(({ mission }) => mission))).toEqual(new Set(["odd"]));
  });

  it("includes events of other processes", async () => {
    using other = openRegistry(systemMachine, server.config.registry_file);
    const seen = await listen(
      "/v1/events",
      {},
      (text) => text.includes("elsewhere"),
      () => other.append({ kind: "init", mission: "m1", data: { where: "elsewhere" } }),
    );
    expect(seen).toHaveLength(1);
  });

  it("replays the whole log to a client whose number is from before the log was rebuilt", async () => {
    append(1);
    const seen = await listen("/v1/events", { "last-event-id": "99999999" }, (text) =>
      text.includes('"n":1'),
    );
    expect(seen[0]!.seq).toBe(1);
  });

  it("refuses a Last-Event-ID that is not a number", async () => {
    expect((await server.ask("/v1/events", { headers: { "last-event-id": "x" } })).status).toBe(400);
  });

  it("sends comments to keep the connection open", async () => {
    const leave = new AbortController();
    const response = await server.ask("/v1/events", { signal: leave.signal });
    let text = "";
    for await (const chunk of response.body!.pipeThrough(new TextDecoderStream())) {
      text += chunk;
      if (text.includes("\n:\n\n")) break;
    }
    leave.abort();
    expect(text).toMatch(/^retry: 1000\n\n:\n\n/);
  });
});

describe("a client that never reads", () => {
  it("is disconnected; other clients get all events and no memory is used for it", async () => {
    // Bytes that the stalled clients' streams read from the log; the client that reads selects a mission.
    let takenBytes = 0;
    const { events } = server.port;
    using _spy = vi.spyOn(server.port, "events").mockImplementation((wanted) => {
      const page = events(wanted);
      if (wanted.mission === undefined) takenBytes += Buffer.byteLength(page.map(formatEvent).join(""));
      return page;
    });
    const { subscribe } = server.port;
    let opened = 0;
    let closed = 0;
    using _count = vi.spyOn(server.port, "subscribe").mockImplementation((listener) => {
      const unsubscribe = subscribe(listener);
      opened += 1;
      return () => {
        closed += 1;
        unsubscribe();
      };
    });
    const sockets = Array.from({ length: 20 }, () => {
      const socket = connect(Number(new URL(server.url).port), "127.0.0.1");
      socket.pause();
      socket.on("error", () => {});
      socket.write(
        `GET /v1/events?after=0 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${server.token}\r\n\r\n`,
      );
      return socket;
    });
    const registry = server.pitContext.registry()!;
    registry.database.exec("BEGIN");
    for (let i = 0; i < 3000; i += 1)
      registry.append({ kind: "start", mission: "flood", data: { text: "x".repeat(4000) } });
    registry.database.exec("COMMIT");
    append(1);
    const seen = await listen(
      "/v1/events?after=0&mission=flood",
      {},
      // The length is checked first because counting is slow.
      (text) => text.length > 12_000_000 && text.split("\nid: ").length > 3000,
    );
    expect(seen).toHaveLength(3000);
    await vi.waitFor(() => expect([opened, closed]).toEqual([21, 21]), { timeout: 25_000 });
    // Only now do they read: what is in their socket buffers, then the end.
    const received = await Promise.all(
      sockets.map(async (socket) => {
        let bytes = 0;
        socket.on("data", (chunk) => {
          bytes += chunk.length;
        });
        const closed = new Promise<void>((resolve) => socket.on("close", () => resolve()));
        socket.resume();
        await closed;
        return bytes;
      }),
    );
    for (const bytes of received) expect(bytes).toBeLessThan(12_000_000);
    // The log holds 12 MB for each of the 20. What was read for them and is not in their socket buffers is a few pages each.
    const pageBytes = 100 * 4200;
    const heldBytes = takenBytes - received.reduce((sum, bytes) => sum + bytes, 0);
    expect(takenBytes).toBeGreaterThan(0);
    expect(heldBytes).toBeLessThan(sockets.length * 4 * pageBytes);
    expect((await fetch(`${server.url}/health`)).status).toBe(200);
  });

  it("is detected by the number of checks, not by time: a suspended pit disconnects no client", async () => {
    const wakes: (() => void)[] = [];
    let nowMs = 0;
    let dropped = 0;
    const stream = streamEvents({
      source: { events: () => [], subscribe: () => () => {} },
      clock: {
        nowMs: () => nowMs,
        monotonicMs: () => nowMs,
        sleep: () => new Promise((resolve) => wakes.push(resolve)),
      },
      afterSeq: 0,
      signal: new AbortController().signal,
      onDropped: () => {
        dropped += 1;
      },
      limits: { stallTimeoutMs: 1000 },
    });
    const seen: number[] = [];
    for (let check = 0; check < 5; check += 1) {
      nowMs += 60_000;
      for (const wake of wakes.splice(0)) wake();
      await new Promise((resolve) => setImmediate(resolve));
      seen.push(dropped);
    }
    expect(seen).toEqual([0, 0, 0, 0, 1]);
    await stream.cancel();
  });

  it("closes its connection once", async () => {
    let dropped = 0;
    let unsubscribed = 0;
    const events = [{ seq: 1, time_ms: 0, mission: null, kind: "start" as const, data: {} }];
    const stream = streamEvents({
      source: {
        events: ({ afterSeq = 0 }) => events.filter(({ seq }) => seq > afterSeq),
        subscribe: () => () => {
          unsubscribed += 1;
        },
      },
      clock: systemMachine.clock,
      afterSeq: 0,
      signal: new AbortController().signal,
      onDropped: () => {
        dropped += 1;
      },
      limits: { stallTimeoutMs: 50 },
    });
    await expect.poll(() => [dropped, unsubscribed], { timeout: 20_000 }).toEqual([1, 1]);
    await stream.cancel();
  });

  it("streams end when the server closes", async () => {
    const other = await startTestServer();
    const response = await other.ask("/v1/events");
    await other[Symbol.asyncDispose]();
    await response.text().catch(() => {});
  });
});
