// One pseudoterminal, opened with node-pty, which is loaded only here and only for agents that have a terminal. node-pty
// starts nothing: the keeper stays the agent's parent and opens the terminal by its name.
import { closeSync, constants, existsSync, openSync, write } from "node:fs";
import { createRequire } from "node:module";
import type { ReadStream } from "node:tty";
import type { Clock } from "../../platform/clock.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import { workerUrl } from "../../platform/worker-module.ts";
import type { TerminalSize } from "./size.ts";

export interface Pty {
  /** The device that the agent opens. */
  readonly name: string;
  /** Bytes that the agent has not taken yet. */
  readonly unwritten: number;
  write(bytes: Buffer): void;
  resize(size: TerminalSize): void;
  /** The agent has exited: what it has written is delivered, then the terminal is hung up. */
  finish(): Promise<void>;
}

export interface PtyEvents {
  data(chunk: Buffer): void;
  /** The terminal was hung up. All output has been delivered. */
  end(): void;
  /** Input was written. */
  drain(): void;
}

/** What `open` of node-pty returns; its own types do not name it. */
interface Opened {
  readonly fd: number;
  readonly ptsName: string;
  readonly master: ReadStream;
  readonly slave: ReadStream;
  resize(columns: number, rows: number): void;
}

type Open = (options: { cols: number; rows: number; encoding: null }) => Opened;

/** How soon input is offered again to a terminal whose queue is full. */
const RETRY_MS = 5;
/** The kernel delivers what is written within this time. */
const QUIET_MS = 100;
/** How long output of leftover processes is still read. */
const FINISH_MS = 1000;

/** Throws where there is no binary for this platform, or no pty. */
export function openPty(clock: Clock, { columns, rows }: TerminalSize, events: PtyEvents): Pty {
  const { open } = createRequire(import.meta.url)("@lydell/node-pty") as { open: Open };
  const opened = open({ cols: columns, rows, encoding: null });
  const { master, fd, ptsName } = opened;
  // node-pty would read input that is meant for the agent. But the terminal must stay open until the agent has opened it.
  const held = openSync(ptsName, constants.O_RDWR | constants.O_NOCTTY);
  opened.slave.destroy();
  let hasEnded = false;
  let received = 0;
  const end = () => {
    if (hasEnded) return;
    hasEnded = true;
    events.end();
  };
  // A hung-up terminal reads as EIO, which node-pty would throw.
  master.removeAllListeners("error");
  master.on("error", end);
  master.on("end", end);
  master.on("close", end);
  master.on("data", (chunk: Buffer) => {
    received += 1;
    events.data(chunk);
  });
  const input = createInput(clock, fd, () => hasEnded, events.drain);
  return {
    name: ptsName,
    get unwritten() {
      return input.unwritten;
    },
    write: input.write,
    resize(size) {
      if (!hasEnded) opened.resize(size.columns, size.rows);
    },
    async finish() {
      // Ends the terminal, unless processes that the agent left behind have it open.
      closeSync(held);
      for (let waitedMs = 0, before = -1; waitedMs < FINISH_MS && before !== received; waitedMs += QUIET_MS) {
        before = received;
        await clock.sleep(QUIET_MS);
      }
      end();
    },
  };
}

/** Not through the stream, which would block this process until the agent reads. */
function createInput(clock: Clock, fd: number, hasEnded: () => boolean, drain: () => void) {
  let queue: Buffer[] = [];
  let unwritten = 0;
  let isWriting = false;
  function next(): void {
    const chunk = queue[0];
    if (chunk === undefined || hasEnded()) {
      isWriting = false;
      return;
    }
    isWriting = true;
    write(fd, chunk, (error, count) => {
      if (error !== null && systemErrorCode(error) === "EAGAIN") {
        void clock.sleep(RETRY_MS).then(next);
        return;
      }
      // Any other failure: the terminal is gone, and the input with it.
      const written = error === null ? count : chunk.length;
      unwritten -= written;
      queue = written === chunk.length ? queue.slice(1) : [chunk.subarray(written), ...queue.slice(1)];
      drain();
      next();
    });
  }
  return {
    get unwritten() {
      return unwritten;
    },
    write(bytes: Buffer) {
      queue.push(bytes);
      unwritten += bytes.length;
      if (!isWriting) next();
    },
  };
}

/** Why agents on this machine cannot have their own terminal. */
export function findTerminalProblem(): string | undefined {
  if (!["/usr/bin/setsid", "/bin/setsid"].some((path) => existsSync(path)))
    return "the program setsid is not installed";
  try {
    const { open } = createRequire(import.meta.url)("@lydell/node-pty") as { open: Open };
    const { master, slave } = open({ cols: 80, rows: 24, encoding: null });
    master.destroy();
    slave.destroy();
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message.split("\n")[0]! : String(error);
  }
}

/** The program that hosts a terminal for the keeper. */
export function terminalHostFile(): string {
  return decodeURIComponent(workerUrl("terminal-host", import.meta.url).pathname);
}
