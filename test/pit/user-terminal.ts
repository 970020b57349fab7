// A person at a terminal: a real pty with the real command line in it, driven by node-pty. Waits for what is on the screen.
import { spawn } from "@lydell/node-pty";
import { LAUNCHER } from "../cli/hermetic.ts";
import type { PitWorld } from "./pit-world.ts";

export interface UserTerminal {
  readonly pid: number;
  /** Everything that was printed so far. */
  readonly output: string;
  type(text: string): void;
  resize(columns: number, rows: number): void;
  /** Waits until this is printed, after everything that an earlier call has waited for. */
  see(text: string | RegExp): Promise<RegExpMatchArray>;
  /** Closes the window: the terminal is hung up. */
  close(): void;
  /** A signal for the command alone. */
  signal(name: NodeJS.Signals): void;
  readonly ended: Promise<number>;
  /** Stops reading, so that what is printed piles up. */
  pause(): void;
  resume(): void;
}

const WAIT_MS = Number(process.env.LAZARUS_TERMINAL_WAIT_MS ?? 120_000);

export interface UserTerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  /** A program in place of the command line. */
  readonly program?: string;
  readonly env?: Readonly<Record<string, string>>;
}

export function openUserTerminal(
  world: PitWorld,
  words: readonly string[],
  { columns = 80, rows = 24, program, env = {} }: UserTerminalOptions = {},
): UserTerminal {
  const [file, args] =
    program === undefined ? [process.execPath, [LAUNCHER, ...words]] : [program, [...words]];
  const pty = spawn(file, args, {
    cols: columns,
    rows,
    cwd: world.cwd,
    env: { ...world.env, TERM: "xterm-256color", ...env },
    encoding: "utf8",
  });
  let output = "";
  let seen = 0;
  pty.onData((text) => {
    output += text;
  });
  const ended = new Promise<number>((resolve) => {
    pty.onExit(({ exitCode, signal }) => resolve(signal ? 128 + signal : exitCode));
  });
  return {
    pid: pty.pid,
    ended,
    get output() {
      return output;
    },
    type: (text) => pty.write(text),
    resize: (c, r) => pty.resize(c, r),
    async see(text) {
      const pattern = typeof text === "string" ? new RegExp(RegExp.escape(text)) : text;
      let found: RegExpMatchArray | null = null;
      try {
        await world.until(
          `${pattern}`,
          () => {
            found = pattern.exec(output.slice(seen));
            return found;
          },
          WAIT_MS,
        );
      } catch {
        throw new Error(`${pattern} was not printed after ${JSON.stringify(output.slice(seen))}`);
      }
      seen += found!.index! + found![0].length;
      return found!;
    },
    close: () => (pty as unknown as { destroy(): void }).destroy(),
    signal: (name) => process.kill(pty.pid, name),
    pause: () => pty.pause(),
    resume: () => pty.resume(),
  };
}
