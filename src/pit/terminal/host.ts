// One terminal and its viewers. All output goes to the log; each viewer gets it as fast as it can take it. A viewer that
// cannot keep up misses output and is repainted, so the agent never waits for it and memory stays bounded. The size is
// that of the most recently active viewer, as in tmux.
import type { Socket } from "node:net";
import type { Clock } from "../../platform/clock.ts";
import { createBacklog } from "./backlog.ts";
import { createEscapeScanner } from "./escapes.ts";
import { createFrameDecoder, encodeFrame, type Frame, type Hello } from "./frames.ts";
import { isReport, typedInterrupt } from "./keys.ts";
import { createTerminalModes } from "./modes.ts";
import type { Pty } from "./pty.ts";
import { isTerminalSize, type TerminalSize } from "./size.ts";

export interface HostOptions {
  readonly clock: Clock;
  readonly size: TerminalSize;
  log(chunk: Buffer): void;
  /** Called before the agent gets the key. */
  interrupted(signal: NodeJS.Signals): void;
  resized(size: TerminalSize): void;
}

interface Viewer {
  readonly socket: Socket;
  /** Null: it has no screen. */
  size: TerminalSize | null;
  readOnly: boolean;
  hasSaidHello: boolean;
  /** It has missed output. */
  isBehind: boolean;
}

const VIEWER_BYTES = 1024 * 1024;
/** Output that is repeated to a viewer that has missed some. */
const SCREEN_BYTES = 16 * 1024;
/** Input that waits for the agent; more is left in the viewer's socket. */
const INPUT_BYTES = 64 * 1024;
/** Long enough for a program to notice both sizes. */
const REDRAW_MS = 60;
/** How long slow viewers get for the last output. */
const CLOSE_MS = 1000;

export class TerminalHost {
  readonly #pty: Pty;
  readonly #options: HostOptions;
  readonly #backlog = createBacklog();
  readonly #modes = createTerminalModes();
  readonly #scanner = createEscapeScanner({ sequence: (sequence) => this.#modes.apply(sequence) });
  /** The most recently active one is last. */
  #viewers: Viewer[] = [];
  #size: TerminalSize;
  #isRedrawing = false;

  constructor(pty: Pty, options: HostOptions) {
    this.#pty = pty;
    this.#options = options;
    this.#size = options.size;
  }

  /** What the agent has written. */
  output(chunk: Buffer): void {
    this.#options.log(chunk);
    this.#backlog.add(chunk, this.#modes.isAlternate);
    this.#scanner.scan(chunk);
    const frame = encodeFrame("output", chunk);
    for (const viewer of this.#viewers) {
      if (!viewer.hasSaidHello) continue;
      if (viewer.socket.writableLength > VIEWER_BYTES) viewer.isBehind = true;
      if (!viewer.isBehind) viewer.socket.write(frame);
    }
  }

  /** The agent has taken some input. */
  drained(): void {
    if (this.#pty.unwritten <= INPUT_BYTES) for (const { socket } of this.#viewers) socket.resume();
  }

  connect(socket: Socket): void {
    const viewer: Viewer = { socket, size: null, readOnly: true, hasSaidHello: false, isBehind: false };
    this.#viewers = [viewer, ...this.#viewers];
    const decode = createFrameDecoder();
    socket.on("data", (chunk: Buffer) => {
      try {
        for (const frame of decode(chunk)) this.#receive(viewer, frame);
      } catch {
        socket.destroy();
      }
    });
    socket.on("drain", () => {
      if (!viewer.isBehind) return;
      viewer.isBehind = false;
      this.#paint(viewer, SCREEN_BYTES);
      if (this.#modes.isAlternate) void this.#redraw();
    });
    const remove = () => {
      this.#viewers = this.#viewers.filter((each) => each !== viewer);
      this.#follow();
    };
    socket.on("error", remove);
    socket.on("close", remove);
  }

  /** Ends every connection once its output is sent. */
  async close(): Promise<void> {
    const closed = this.#viewers.map(
      ({ socket }) => new Promise<void>((resolve) => socket.once("close", () => resolve())),
    );
    for (const { socket } of this.#viewers) socket.end();
    await Promise.race([Promise.all(closed), this.#options.clock.sleep(CLOSE_MS)]);
  }

  #receive(viewer: Viewer, { type, payload }: Frame): void {
    if (type === "hello") {
      const hello = JSON.parse(payload.toString()) as Hello;
      viewer.readOnly = hello.readOnly === true;
      viewer.size = isTerminalSize(hello.size) ? hello.size : null;
      viewer.hasSaidHello = true;
      this.#paint(viewer);
      if (!this.#becomeActive(viewer) && this.#modes.isAlternate) void this.#redraw();
    } else if (type === "size") {
      const size: unknown = JSON.parse(payload.toString());
      if (viewer.size === null || !isTerminalSize(size)) return;
      viewer.size = size;
      this.#becomeActive(viewer);
    } else if (type === "input" && !viewer.readOnly) this.#input(viewer, payload);
  }

  #input(viewer: Viewer, bytes: Buffer): void {
    // Every viewer's terminal replies to a query that the agent has sent once.
    if (!isReport(bytes)) this.#becomeActive(viewer);
    else if (this.#active() !== viewer) return;
    const signal = typedInterrupt(bytes);
    if (signal !== undefined) this.#options.interrupted(signal);
    this.#pty.write(bytes);
    if (this.#pty.unwritten > INPUT_BYTES) viewer.socket.pause();
  }

  /** The viewer whose size counts. */
  #active(): Viewer | undefined {
    return this.#viewers.findLast(({ size, readOnly }) => size !== null && !readOnly);
  }

  /** Returns whether the size has changed. */
  #becomeActive(viewer: Viewer): boolean {
    this.#viewers = [...this.#viewers.filter((each) => each !== viewer), viewer];
    return this.#follow();
  }

  #follow(): boolean {
    const { columns, rows } = this.#active()?.size ?? this.#size;
    if (columns === this.#size.columns && rows === this.#size.rows) return false;
    this.#size = { columns, rows };
    this.#pty.resize(this.#size);
    this.#options.resized(this.#size);
    return true;
  }

  /** The whole screen, as far as it is known; `limitBytes`: for a viewer that has missed output. */
  #paint(viewer: Viewer, limitBytes?: number): void {
    const clear = "\x1b[2J\x1b[H";
    const { isAlternate } = this.#modes;
    const { normal, alternate } = this.#backlog.replay(isAlternate ? undefined : limitBytes);
    const screen = isAlternate
      ? [this.#modes.enter(), clear, alternate]
      : [limitBytes === undefined ? "" : clear, normal, this.#modes.enter()];
    const parts = [...screen, this.#scanner.unfinished].map((part) =>
      typeof part === "string" ? Buffer.from(part, "latin1") : part,
    );
    viewer.socket.write(encodeFrame("paint", Buffer.concat(parts)));
  }

  /** A full-screen program paints everything when the size changes. */
  async #redraw(): Promise<void> {
    if (this.#isRedrawing || this.#size.rows < 2) return;
    this.#isRedrawing = true;
    this.#pty.resize({ ...this.#size, rows: this.#size.rows - 1 });
    await this.#options.clock.sleep(REDRAW_MS);
    this.#isRedrawing = false;
    this.#pty.resize(this.#size);
  }
}
