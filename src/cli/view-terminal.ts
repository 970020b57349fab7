// Connects the user's terminal to that of an agent: keys in, output out. Puts the user's terminal into raw mode
// and always restores it, however the view ends. Decides nothing about the agent.
import { spawnSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { basename, dirname } from "node:path";
import type { Left } from "../pit/foreground.ts";
import { createEscapeScanner } from "../pit/terminal/escapes.ts";
import { createFrameDecoder, encodeFrame, type Hello } from "../pit/terminal/frames.ts";
import { createDetachMatcher } from "../pit/terminal/keys.ts";
import { createTerminalModes } from "../pit/terminal/modes.ts";
import type { TerminalSize } from "../pit/terminal/size.ts";
import type { CliContext } from "./context.ts";

export interface ViewOptions {
  /** The agent's terminal. */
  readonly socket: string;
  readonly readOnly: boolean;
  readonly detachKeys: readonly number[];
  /** Typed before the view began. */
  readonly typed?: string;
}

const LEAVING: readonly NodeJS.Signals[] = ["SIGHUP", "SIGTERM", "SIGINT", "SIGQUIT"];
/** The size of sun_path on every system. */
const MAX_SOCKET_PATH_BYTES = 103;
const NEWLINE = 0x0a;

/** Resolves with undefined when the agent's terminal has ended. */
export async function viewTerminal(context: CliContext, options: ViewOptions): Promise<Left | undefined> {
  const { stdin } = process;
  const hasKeyboard = context.terminal.isInteractive && context.terminal.outIsTerminal;
  const socket = await openSocket(options.socket);
  if (socket === undefined) return undefined;
  const screen = openScreen(context);
  const cleanups: (() => void)[] = [];
  try {
    return await new Promise<Left | undefined>((resolve) => {
      const leave = (signal: NodeJS.Signals | null) => resolve({ signal });
      for (const name of LEAVING) {
        const receive = () => leave(name);
        process.on(name, receive);
        cleanups.push(() => process.off(name, receive));
      }
      const decode = createFrameDecoder();
      socket.on("data", (chunk: Buffer) => {
        for (const { type, payload } of decode(chunk)) {
          if (type === "paint") screen.reset();
          screen.write(payload);
        }
      });
      socket.on("error", () => resolve(undefined));
      socket.on("close", () => resolve(undefined));
      const hello: Hello = { size: hasKeyboard ? windowSize() : null, readOnly: options.readOnly };
      socket.write(encodeFrame("hello", JSON.stringify(hello)));
      if (options.typed) socket.write(encodeFrame("input", options.typed));
      if (!hasKeyboard) return;
      const matcher = createDetachMatcher(options.detachKeys);
      const type = (chunk: Buffer) => {
        const { forward, isDetach } = matcher(chunk);
        if (forward.length > 0 && !options.readOnly && !socket.write(encodeFrame("input", forward)))
          stdin.pause();
        if (isDetach) leave(null);
      };
      const resume = () => stdin.resume();
      const hangUp = () => leave("SIGHUP");
      const resize = () => socket.write(encodeFrame("size", JSON.stringify(windowSize())));
      stdin.setRawMode(true);
      // Node leaves the translation of newlines on, which full-screen programs do not expect. Node also restores it.
      spawnSync("stty", ["-opost"], { stdio: ["inherit", "ignore", "ignore"] });
      stdin.on("data", type).on("end", hangUp).on("error", hangUp);
      socket.on("drain", resume);
      process.stdout.on("resize", resize);
      stdin.resume();
      cleanups.push(() => {
        stdin.off("data", type).off("end", hangUp).off("error", hangUp);
        process.stdout.off("resize", resize);
        stdin.pause();
      });
    });
  } finally {
    for (const cleanup of cleanups) cleanup();
    socket.destroy();
    screen.close();
  }
}

/** A terminal that does not report its size (a serial line) gets 80 × 24. */
export function windowSize(): TerminalSize {
  return { columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 };
}

/** What the agent does to the user's terminal, and how to undo it. */
function openScreen({ terminal }: CliContext) {
  let modes = createTerminalModes();
  let lastByte = NEWLINE;
  let isClosed = false;
  const scanner = createEscapeScanner({ sequence: (sequence) => modes.apply(sequence) });
  const print = (bytes: Buffer | string) => {
    try {
      terminal.out(bytes);
    } catch {
      // The terminal is gone; its signal or end of input follows.
    }
  };
  const close = () => {
    if (isClosed) return;
    isClosed = true;
    process.off("exit", close);
    const isInLine = lastByte !== NEWLINE && !modes.isAlternate;
    if (terminal.outIsTerminal) print(`${modes.leave()}${isInLine ? "\r\n" : ""}`);
    if (process.stdin.isRaw) process.stdin.setRawMode(false);
  };
  process.on("exit", close);
  return {
    write(bytes: Buffer) {
      scanner.scan(bytes);
      lastByte = bytes.at(-1) ?? lastByte;
      print(bytes);
    },
    /** Before a paint: undoes what was left when output was missed. */
    reset() {
      if (terminal.outIsTerminal) print(modes.leave());
      modes = createTerminalModes();
    },
    close,
  };
}

/** Undefined when nothing listens: the terminal has ended. */
function openSocket(path: string): Promise<Socket | undefined> {
  // A long path is reached through its directory.
  const isLong = Buffer.byteLength(path) > MAX_SOCKET_PATH_BYTES && process.platform === "linux";
  let directory: number | undefined;
  try {
    directory = isLong ? openSync(dirname(path), "r") : undefined;
  } catch {
    return Promise.resolve(undefined);
  }
  const address = directory === undefined ? path : `/proc/self/fd/${directory}/${basename(path)}`;
  return new Promise((resolve) => {
    const socket = connect(address);
    const done = (result: Socket | undefined) => {
      if (directory !== undefined) closeSync(directory);
      directory = undefined;
      resolve(result);
    };
    socket.once("connect", () => done(socket));
    socket.once("error", () => done(undefined));
  });
}
