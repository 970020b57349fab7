// Starts a victim process, kills it at a crash point, and returns how it ended.
import { spawn } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export interface Ending {
  readonly signal: string | null;
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export function runVictim(args: readonly string[], crashAt: string): Promise<Ending> {
  return new Promise((resolve, reject) => {
    const child = spawn(
      process.execPath,
      ["--import", here("../../src/testing/arm-crash-point.ts"), here("victim.ts"), ...args],
      { env: { ...process.env, LAZARUS_CRASH_AT: crashAt }, stdio: ["ignore", "pipe", "pipe"] },
    );
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
