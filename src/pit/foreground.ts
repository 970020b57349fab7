// An agent in the foreground: it has the caller's terminal, and signals to the caller are forwarded to it. The caller owns
// the life: it handles the exit and revives the agent in the same terminal; a pit takes over only when the caller is gone.
// Ctrl-C is the user's stop, not a crash.
import { spawnSync } from "node:child_process";
import { type Exit, isKeeperAlive, readExitOf, readLife, toShellStatus } from "../cell/life.ts";
import type { MissionId } from "../cell/mission-id.ts";
import type { Clock } from "../platform/clock.ts";
import type { PitContext } from "./context.ts";
import { handleExit } from "./death/handle-exit.ts";
import { sendSignal } from "./processes/process-table.ts";
import { isAhead, isDue } from "./record/pending.ts";
import { type MissionRecord, nextStep, setDesiredState } from "./record/record.ts";
import { readRecord, writeRecord } from "./record/store.ts";
import { reviveAsDecided } from "./start/revive.ts";
import type { Started } from "./start/start-agent.ts";
import { wakePit } from "./supervise/wake-file.ts";

const POLL_MS = 10;
/** How quickly a caller that waits for the next life notices a stop or a revival by somebody else. */
const WAIT_POLL_MS = 100;

/** Ctrl-C, Ctrl-\ and a service manager's stop. SIGHUP is not: the terminal is gone, but the agent is still wanted. */
const STOP_SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT", "SIGTERM"];
const FORWARDED: readonly NodeJS.Signals[] = [...STOP_SIGNALS, "SIGHUP", "SIGUSR1", "SIGUSR2"];

/** A request to end that this process has received. */
export interface StopRequest {
  readonly signal: NodeJS.Signals;
  /** Wall clock. */
  readonly atMs: number;
}

export interface SignalRelay extends Disposable {
  /** Forwards to this process from now on, first the signals received so far; undefined: to nobody. */
  to(pid: number | undefined): void;
  /** The last request to end. */
  readonly stop: StopRequest | undefined;
  /** The terminal is gone. */
  readonly hungUp: boolean;
}

/**
 * Catches signals to this process and forwards them. Opened before the target exists, so that no signal is lost. `shared`:
 * both are in the terminal's foreground process group, so the terminal itself sends Ctrl-C and Ctrl-\\ to the target.
 */
export function openSignalRelay(clock: Clock, options: { readonly shared?: boolean } = {}): SignalRelay {
  const queued: NodeJS.Signals[] = [];
  let target: number | undefined;
  let stop: StopRequest | undefined;
  let hungUp = false;
  const receive = (name: NodeJS.Signals) => {
    if (STOP_SIGNALS.includes(name)) stop = { signal: name, atMs: clock.nowMs() };
    if (name === "SIGHUP") hungUp = true;
    if (target === undefined) queued.push(name);
    else if (!options.shared || (name !== "SIGINT" && name !== "SIGQUIT")) sendSignal(target, name);
  };
  for (const name of FORWARDED) process.on(name, receive);
  return {
    to(pid) {
      target = pid;
      if (pid !== undefined) for (const name of queued.splice(0)) sendSignal(pid, name);
    },
    get stop() {
      return stop;
    },
    get hungUp() {
      return hungUp;
    },
    [Symbol.dispose]() {
      for (const name of FORWARDED) process.off(name, receive);
    },
  };
}

/**
 * Whether an agent ended because of a request: from the signal itself, or within its grace period afterwards. An agent
 * may use Ctrl-C for something else and crash later.
 */
export function endedByRequest(
  exit: Pick<Exit, "signal" | "endedMs"> | undefined,
  request: StopRequest | undefined,
  graceMs: number,
): boolean {
  if (request === undefined || exit === undefined) return false;
  return exit.signal === request.signal || exit.endedMs - request.atMs <= graceMs;
}

export interface ForegroundEnd {
  readonly status: number;
  /** Undefined when somebody else has already revived the agent. */
  readonly record: MissionRecord | undefined;
  /** Epoch of the life that somebody else has started since. */
  readonly revivedAs: number | undefined;
  readonly problem: string | undefined;
}

/**
 * Waits until the agent ends, revives it in the same terminal as the policy decides, and returns how the last life ended.
 * `report` is called after each life.
 */
export async function runInForeground(
  context: PitContext,
  mission: MissionId,
  first: Started,
  relay: SignalRelay,
  report: (end: ForegroundEnd) => void,
): Promise<ForegroundEnd> {
  for (let started: Started = first; ; ) {
    const end = await waitForAgent(context, mission, started, relay);
    report(end);
    const next = await startNextLife(context, mission, started.epoch, relay);
    if (next === undefined) {
      wakePit(context.machine, context.config, mission);
      return end;
    }
    if (typeof next === "number") return { ...end, record: undefined, revivedAs: next };
    started = next;
  }
}

/** Waits until the agent ends and handles the exit, unless somebody else was faster. */
export async function waitForAgent(
  context: PitContext,
  mission: MissionId,
  started: Started,
  relay: SignalRelay,
): Promise<ForegroundEnd> {
  const { machine, config } = context;
  relay.to(started.life?.agent.pid);
  await started.ended;
  relay.to(undefined);
  // The next life may already have been started, which is not ours to wait for.
  const isOurs = () => (readLife(config, mission)?.epoch ?? started.epoch) <= started.epoch;
  while (isOurs() && isKeeperAlive(machine.processes, config, mission)) await machine.clock.sleep(POLL_MS);
  const exit = readExitOf(config, mission, started.epoch);
  using _ = await context.lockMission(mission, `end of ${mission}`);
  const found = readRecord(config, mission);
  const graceMs = found === undefined ? 0 : context.settings(found).graceSeconds * 1000;
  const isStopped = isOurs() && endedByRequest(exit, relay.stop, graceMs);
  const result = await handleExit(context, isStopped ? stop(context, found) : found);
  const successor = readLife(config, mission)?.epoch ?? 0;
  const revived = result.state === "alive" && successor > started.epoch;
  const handled = result.state === "handled" || result.state === "checkpoint-failed";
  return {
    status: exit === undefined ? 1 : toShellStatus(exit),
    record: handled ? result.record : undefined,
    revivedAs: revived ? successor : undefined,
    problem: result.state === "checkpoint-failed" ? result.error.message : undefined,
  };
}

/** A human's stop; the caller holds the mission's lock. */
function stop(context: PitContext, record: MissionRecord | undefined): MissionRecord | undefined {
  if (record?.wish !== "running") return record;
  const { machine, config } = context;
  const stopped = setDesiredState(record, "stopped", machine.clock.nowMs());
  writeRecord(machine, config, stopped);
  context.recordEvent({ kind: "stop", mission: record.mission, data: { wish: "stopped" } });
  return stopped;
}

/** Undefined: nothing more happens in this terminal. A number: somebody else has started that life. */
async function startNextLife(
  context: PitContext,
  mission: MissionId,
  epoch: number,
  relay: SignalRelay,
): Promise<Started | number | undefined> {
  const { machine, config } = context;
  const before = relay.stop;
  for (;;) {
    const record = readRecord(config, mission);
    if (record?.life == null || relay.hungUp) return undefined;
    if (record.life.epoch !== epoch) return record.life.epoch;
    if (record.wish !== "running" || nextStep(record) !== "wait") return undefined;
    if (relay.stop === before && isAhead(record, machine.clock.nowMs())) {
      await machine.clock.sleep(WAIT_POLL_MS);
      continue;
    }
    using lock = await context.lockMission(mission, `revival of ${mission}`);
    const exit = await handleExit(context, readRecord(config, mission));
    if (exit.state !== "handled" || exit.record.life?.epoch !== epoch) continue;
    if (relay.stop !== before) stop(context, exit.record);
    else if (isDue(exit.record, machine.clock.nowMs()))
      return await reviveAsDecided(context, exit, lock, { foreground: true });
  }
}

/** Returns a function that gives the terminal back its settings: a crashed agent may leave it without echo or Ctrl-C. */
export function saveTerminal(): () => void {
  const { status, stdout } = spawnSync("stty", ["-g"], {
    stdio: ["inherit", "pipe", "ignore"],
    encoding: "utf8",
  });
  if (status !== 0) return () => {};
  return () => {
    spawnSync("stty", [stdout.trim()], { stdio: ["inherit", "ignore", "ignore"] });
  };
}
