// Starts a victim process, kills it at a crash point, and returns how it ended.
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ARM, bundleProgram } from "../bundle.ts";

export interface Ending {
  readonly signal: string | null;
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a test program until it is killed at `crashAt` or ends. */
export async function runUntil(crashAt: string, source: string, ...args: readonly string[]): Promise<Ending> {
  const program = await bundleProgram(source);
  const child = spawn(process.execPath, ["--import", ARM, program, ...args], {
    env: { ...process.env, LAZARUS_CRASH_AT: crashAt },
    stdio: ["ignore", "pipe", "pipe"],
  });
  return new Promise((resolve, reject) => {
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (data) => {
      stdout += data;
    });
    child.stderr.on("data", (data) => {
      stderr += data;
    });
    child.on("error", reject);
    child.on("close", (code, signal) => resolve({ code, signal, stdout, stderr }));
  });
}

const VICTIM = fileURLToPath(new URL("victim.ts", import.meta.url));
const RESTORE_VICTIM = fileURLToPath(new URL("restore-victim.ts", import.meta.url));

export const runVictim = (args: readonly string[], crashAt: string) => runUntil(crashAt, VICTIM, ...args);
export const runRestore = (args: readonly string[], crashAt: string) =>
  runUntil(crashAt, RESTORE_VICTIM, ...args);

/** Runs `work` on a temporary copy of a home. */
export async function withCopy<T>(home: string, work: (copy: string) => Promise<T>): Promise<T> {
  const copy = mkdtempSync(join(tmpdir(), "lazarus-kill-"));
  try {
    cpSync(home, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
    return await work(copy);
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}
