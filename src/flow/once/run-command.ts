// Runs one command and reports how it ended. A shell first writes its own pid into a file that must not exist yet, and then
// execs the command. So a missing file proves that the command never began, and whichever process creates the file first
// (the command, or a later attempt that gives up on it) decides.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { quietly } from "../../platform/errors.ts";
import { type Captured, createCapture } from "./output.ts";

export interface CommandRequest {
  readonly command: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly pidFile: string;
  /** Whether the command may read the caller's standard input. */
  readonly stdin: "inherit" | "ignore";
  readonly onStdout?: ((chunk: Buffer) => void) | undefined;
  readonly onStderr?: ((chunk: Buffer) => void) | undefined;
  /** Sends SIGTERM to the command; how it ends is still recorded. */
  readonly signal?: AbortSignal | undefined;
}

export interface CommandEnd {
  /** False when the pid file could not be written: the command itself was never started. */
  readonly began: boolean;
  /** For a command killed by a signal, 128 + its number, like a shell. */
  readonly exitCode: number;
  readonly signal: string | null;
  readonly stdout: Captured;
  readonly stderr: Captured;
}

/** Writes the pid and, where there is /proc, the stat line. `-C` makes the creation exclusive. */
const WRAPPER =
  'set -C; IFS= read -r stat 2>/dev/null </proc/$$/stat; printf "%s %s\\n" $$ "$stat" >"$1" || exit 125; shift; exec "$@"';
const NOT_BEGUN = 125;
/** A background child may keep the pipes open forever; what it prints later is not recorded. */
const DRAIN_MS = 500;

export function runCommand(request: CommandRequest): Promise<CommandEnd> {
  const { command, cwd, env, pidFile, stdin, signal } = request;
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", WRAPPER, "lazarus", pidFile, ...command], {
      cwd,
      env,
      stdio: [stdin, "pipe", "pipe"],
    });
    const stdout = createCapture();
    const stderr = createCapture();
    const stop = () => child.kill("SIGTERM");
    let ended = false;
    let timer: NodeJS.Timeout | undefined;
    child.stdout!.on("data", (chunk: Buffer) => {
      stdout.add(chunk);
      forward(request.onStdout, chunk);
    });
    child.stderr!.on("data", (chunk: Buffer) => {
      stderr.add(chunk);
      forward(request.onStderr, chunk);
    });
    const finish = (code: number | null, by: NodeJS.Signals | null) => {
      if (ended) return;
      ended = true;
      clearTimeout(timer);
      signal?.removeEventListener("abort", stop);
      child.stdout!.destroy();
      child.stderr!.destroy();
      resolve({
        began: code !== NOT_BEGUN || namesProcess(pidFile, child.pid),
        exitCode: code ?? signalExit(by),
        signal: by,
        stdout: stdout.finish(),
        stderr: stderr.finish(),
      });
    };
    child.on("error", (error) => {
      ended = true;
      signal?.removeEventListener("abort", stop);
      reject(error);
    });
    child.on("exit", (code, by) => {
      // If this process itself was suspended for that long, output is still unread: the immediate runs after the next
      // poll of the pipes.
      timer = setTimeout(() => setImmediate(finish, code, by), DRAIN_MS);
    });
    child.on("close", finish);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A closed output must not prevent recording. */
function forward(to: ((chunk: Buffer) => void) | undefined, chunk: Buffer): void {
  try {
    to?.(chunk);
  } catch {}
}

/** The command itself may exit with 125; then its pid is in the file. */
function namesProcess(pidFile: string, pid: number | undefined): boolean {
  return quietly(() => Number.parseInt(readFileSync(pidFile, "latin1"), 10) === pid) ?? false;
}

function signalExit(signal: NodeJS.Signals | null): number {
  const { signals } = process.getBuiltinModule("node:os").constants;
  return 128 + (signal === null ? 0 : signals[signal]);
}
