// A simulated user at a terminal: a real pty with the real command line in it, driven by node-pty. Waits for what is on the screen.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { spawn } from "@lydell/node-pty";
import { LAUNCHER } from "../cli/hermetic.ts";
import { plainNode, plainUser, publicCopy } from "../plain-user.ts";
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

export interface UserTerminalOptions {
  readonly columns?: number;
  readonly rows?: number;
  /** A program in place of the command line. */
  readonly program?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** As an unprivileged user, to whom the world has been given. */
  readonly asPlainUser?: boolean;
}

export function openUserTerminal(
  world: PitWorld,
  words: readonly string[],
  { columns = 80, rows = 24, program, env = {}, asPlainUser = false }: UserTerminalOptions = {},
): UserTerminal {
  const [node, launcher] = asPlainUser
    ? [plainNode(), publicCopy() === undefined ? LAUNCHER : join(publicCopy()!, "bin", "lazarus.js")]
    : [process.execPath, LAUNCHER];
  const [file, args] = program === undefined ? [node, [launcher, ...words]] : [program, [...words]];
  const pty = spawn(file, args, {
    cols: columns,
    rows,
    cwd: world.cwd,
    env: { ...world.env, TERM: "xterm-256color", ...env },
    encoding: "utf8",
    ...(asPlainUser ? plainUser() : {}),
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
        await world.until(`${pattern}`, () => {
          found = pattern.exec(output.slice(seen));
          return found;
        });
      } catch {
        throw new Error(
          `${pattern} was not printed after ${JSON.stringify(output.slice(seen).slice(-2000))}`,
        );
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

export function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, "latin1").split(" ").map(Number).filter(Boolean);
}

/** The process that hosts the terminal: a child of the keeper's helper. */
export function findHost(world: PitWorld, mission: string): number {
  const { helper } = world.life(mission) as unknown as { helper: { pid: number } };
  const isHost = (pid: number) => readFileSync(`/proc/${pid}/cmdline`, "latin1").includes("terminal-host");
  const host = childrenOf(helper.pid).find(isHost);
  if (host === undefined) throw new Error("there is no terminal host");
  return host;
}
