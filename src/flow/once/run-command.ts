// Runs one command and reports how it ended. The command is started through a shell that first enters its own pid in a
// file that must not exist yet, and only then becomes the command: so a missing file proves that the command never
// began, and whoever creates the file first (the command, or someone who gave up on it) has decided the matter.
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
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
  /** Asks the command to end; what it does then is still recorded. */
  readonly signal?: AbortSignal | undefined;
}

export interface CommandEnd {
  /** False when the pid file could not be written: the command itself was never started. */
  readonly began: boolean;
  /** As a shell reports it: 128 + the signal's number for a command that a signal ended. */
  readonly exitCode: number;
  readonly signal: string | null;
  readonly stdout: Captured;
  readonly stderr: Captured;
}

/** Says `pid` and, where there is /proc, its stat line. `-C` makes the file's creation exclusive. */
const WRAPPER =
  'set -C; IFS= read -r stat 2>/dev/null </proc/$$/stat; printf "%s %s\\n" $$ "$stat" >"$1" || exit 125; shift; exec "$@"';
const NOT_BEGUN = 125;
/** A background child may hold the pipes open for ever; what it prints after this belongs to nobody. */
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
      pass(request.onStdout, chunk);
    });
    child.stderr!.on("data", (chunk: Buffer) => {
      stderr.add(chunk);
      pass(request.onStderr, chunk);
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
      // When this process was itself stopped for so long, what the command said is still to be read: in the turn that
      // comes before the immediate.
      timer = setTimeout(() => setImmediate(finish, code, by), DRAIN_MS);
    });
    child.on("close", finish);
    if (signal?.aborted) stop();
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/** A reader that has gone costs nobody the record. */
function pass(to: ((chunk: Buffer) => void) | undefined, chunk: Buffer): void {
  try {
    to?.(chunk);
  } catch {}
}

/** The command may end with 125 as well; then its pid is in the file. */
function namesProcess(pidFile: string, pid: number | undefined): boolean {
  try {
    return Number.parseInt(readFileSync(pidFile, "latin1"), 10) === pid;
  } catch {
    return false;
  }
}

function signalExit(signal: NodeJS.Signals | null): number {
  const { signals } = process.getBuiltinModule("node:os").constants;
  return 128 + (signal === null ? 0 : signals[signal]);
}
