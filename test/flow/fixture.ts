// A workspace on a real disk with a simulated clock and process table, for tests of whole operations; and a way to run the
// real command line, with or without a crash point.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { type NewFlow, type Owner, ownerOf, type Workspace } from "../../src/flow/index.ts";
import { systemDisk } from "../../src/platform/disk.ts";
import { createSimulatedMachine, type SimulatedMachine } from "../../src/testing/index.ts";
import { COMPILE_CACHE, LAUNCHER } from "../cli/hermetic.ts";

export interface Fixture extends Disposable {
  readonly machine: SimulatedMachine;
  readonly workspace: Workspace;
  readonly root: string;
  /** An owner whose process lives until the test ends it. */
  owner(name?: string): Owner;
  file(workflow: string): string;
  read(workflow: string): Record<string, unknown>;
  write(path: string, text: string): string;
}

export function createFixture(): Fixture {
  const root = realpathSync(mkdtempSync(join(tmpdir(), "lazarus-flow-")));
  const machine = createSimulatedMachine({ disk: systemDisk });
  const file = (workflow: string) => join(root, "memory", "checkpoints", `${workflow}.json`);
  return {
    machine,
    workspace: { machine, root },
    root,
    owner(name) {
      const { pid } = machine.processes.start();
      return ownerOf(machine.processes, pid, name ?? null)!;
    },
    file,
    read: (workflow) => JSON.parse(readFileSync(file(workflow), "utf8")),
    write(path, text) {
      const full = join(root, path);
      mkdirSync(dirname(full), { recursive: true });
      writeFileSync(full, text);
      return full;
    },
    [Symbol.dispose]: () => rmSync(root, { recursive: true, force: true }),
  };
}

export const REPORT: NewFlow = {
  workflow: "report",
  agent: "anna",
  idempotency: "report-1",
  step: "fetch",
  remaining: ["fetch", "write", "send"],
};

export interface Ended {
  readonly code: number | null;
  readonly signal: string | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface LineOptions {
  readonly cwd: string;
  /** Kill it with SIGKILL at this crash point: `name` or `name#nth`. */
  readonly crashAt?: string;
  readonly killAfterMs?: number;
  readonly env?: Record<string, string>;
}

/** Starts the real command line. */
export function startLine(words: readonly string[], options: LineOptions): ChildProcess {
  const arm =
    options.crashAt === undefined
      ? []
      : ["--import", join(dirname(LAUNCHER), "..", "dist", "arm-crash-point.js")];
  return spawn(process.execPath, [...arm, LAUNCHER, ...words], {
    cwd: options.cwd,
    env: {
      PATH: process.env.PATH ?? "",
      HOME: options.cwd,
      LAZARUS_HOME: join(options.cwd, ".home"),
      NO_COLOR: "1",
      ...COMPILE_CACHE,
      ...(options.crashAt === undefined ? {} : { LAZARUS_CRASH_AT: options.crashAt }),
      ...options.env,
    },
    stdio: ["ignore", "pipe", "pipe"],
  });
}

export function runLine(words: readonly string[], options: LineOptions): Promise<Ended> {
  return new Promise((resolve, reject) => {
    const child = startLine(words, options);
    let stdout = "";
    let stderr = "";
    child.stdout!.on("data", (data) => {
      stdout += data;
    });
    child.stderr!.on("data", (data) => {
      stderr += data;
    });
    const timer =
      options.killAfterMs === undefined
        ? undefined
        : setTimeout(() => child.kill("SIGKILL"), options.killAfterMs);
    const end = (code: number | null, signal: NodeJS.Signals | null) => {
      clearTimeout(timer);
      resolve({ code, signal, stdout, stderr });
    };
    child.on("error", reject);
    // Output may arrive after the exit. After a kill, orphans may keep the pipes open, and the output is not needed.
    child.on("close", end);
    child.on("exit", (code, signal) => {
      if (signal !== null) end(code, signal);
    });
  });
}
