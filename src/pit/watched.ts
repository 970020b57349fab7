// Agents that Lazarus did not start: a process or a systemd unit. The life of such a mission is a waiter, which exits when
// the watched process or unit ends, so its end is handled like that of any agent. A signal to the waiter is
// passed on. Whether a process finished is known only from its hooks; a unit has a result.
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { readHookLines, summarizeHooks } from "../agents/hook-lines.ts";
import type { Clock } from "../platform/clock.ts";
import { quietly } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import { isAlive, type ProcessIdentity } from "../platform/process-identity.ts";
import type { RunProgram } from "../service/plan.ts";

const POLL_MS = 1000;
/** Shorter than the pit's own grace for the waiter. */
const GRACE_MS = 8000;

/** How a watched agent ended, in a sentence for its log. */
export interface WatchedEnd {
  readonly exitCode: number;
  readonly reason: string;
}

/** `hooks`: the directory with the reports of hooks, which have no epoch for an agent that Lazarus did not start. */
export async function waitForProcess(
  machine: Machine,
  identity: ProcessIdentity,
  hooks: string,
  signal: AbortSignal,
): Promise<WatchedEnd> {
  const { clock, processes } = machine;
  const sinceMs = clock.nowMs();
  while (isAlive(processes, identity) && !signal.aborted) await clock.sleep(POLL_MS, signal);
  if (signal.aborted) await endProcess(machine, identity);
  const lines = readHookLines(hooks, 0).filter(({ at_ms: atMs }) => atMs >= sinceMs);
  const isFinished = summarizeHooks(lines).isFinished;
  return {
    exitCode: isFinished ? 0 : 1,
    reason: `process ${identity.pid} has ended${isFinished ? " after its last turn" : ""}`,
  };
}

/**
 * Ends what a waiter with this command line waits for. The waiter passes signals on, but one that comes while it starts
 * kills it first. Does nothing for other agents, or when it has ended.
 */
export async function endWatched(machine: Machine, command: readonly string[]): Promise<void> {
  const at = command.indexOf("watch-wait");
  if (at < 0) return;
  const value = (name: string) =>
    command
      .slice(at)
      .find((word) => word.startsWith(`--${name}=`))
      ?.slice(name.length + 3);
  const [pid, startTime, unit] = [value("pid"), value("started"), value("unit")];
  if (unit !== undefined) spawnSync("systemctl", ["stop", "--", unit], { stdio: "ignore" });
  if (pid === undefined || startTime === undefined) return;
  await endProcess(machine, { pid: Number(pid), startTime, bootId: machine.processes.bootId() });
}

async function endProcess({ clock, processes }: Machine, identity: ProcessIdentity): Promise<void> {
  const untilMs = clock.monotonicMs() + GRACE_MS;
  for (const kind of ["SIGTERM", "SIGKILL"] as const) {
    if (!isAlive(processes, identity)) return;
    process.kill(identity.pid, kind);
    while (isAlive(processes, identity) && clock.monotonicMs() < untilMs) await clock.sleep(100);
  }
}

/** A unit that systemd restarts is not dead. */
export async function waitForUnit(
  clock: Clock,
  unit: string,
  run: RunProgram,
  signal: AbortSignal,
): Promise<WatchedEnd> {
  for (;;) {
    if (signal.aborted) {
      const { code } = run(["systemctl", "stop", unit]);
      return { exitCode: code, reason: `${unit} was stopped` };
    }
    const state = readUnit(unit, run);
    if (state.ActiveState === "inactive" || state.ActiveState === "failed") {
      const isFinished = state.Result === "success" && state.LoadState === "loaded";
      return {
        exitCode: isFinished ? 0 : 1,
        reason: `${unit} is ${state.ActiveState} (${state.Result ?? "unknown"})`,
      };
    }
    await clock.sleep(POLL_MS, signal);
  }
}

/** Properties of a unit; empty when systemd cannot be asked. */
export function readUnit(unit: string, run: RunProgram): Readonly<Record<string, string>> {
  const { code, stdout } = run([
    "systemctl",
    "show",
    "--property=LoadState,ActiveState,Result,Restart",
    "--",
    unit,
  ]);
  if (code !== 0) return {};
  return Object.fromEntries(
    stdout
      .split("\n")
      .filter((line) => line.includes("="))
      .map((line) => [line.slice(0, line.indexOf("=")), line.slice(line.indexOf("=") + 1)]),
  );
}

/** The other supervisor that restarts it, as a phrase; undefined when there is none. Claude's daemon marks the sessions that it keeps. */
export function otherSupervisor(pid: number, readEnvironment = environmentOf): string | undefined {
  return readEnvironment(pid).includes("CLAUDE_CODE_SESSION_KIND=bg")
    ? "Claude's own background service"
    : undefined;
}

function environmentOf(pid: number): readonly string[] {
  return quietly(() => readFileSync(`/proc/${pid}/environ`, "utf8").split("\0")) ?? [];
}
