// An agent in the foreground, without its own terminal: it has the caller's input and output, and signals to the caller
// are forwarded to it. The caller owns the life: it handles the exit and revives the agent in the same place; a pit takes
// over only when the caller is gone. Ctrl-C is the user's stop, not a crash. An agent with its own terminal is only
// viewed: the caller or a pit, whichever is first, handles its exit, and the caller stays for the next life.
import { spawnSync } from "node:child_process";
import { isKeeperAlive, type Life, readExitOf, readLife, readLifeOf, toShellStatus } from "../cell/life.ts";
import type { MissionId } from "../cell/mission-id.ts";
import type { Clock } from "../platform/clock.ts";
import type { PitContext } from "./context.ts";
import { handleExit } from "./death/handle-exit.ts";
import { endedByRequest, recordStop, type StopRequest } from "./death/requested-end.ts";
import { sendSignal } from "./processes/process-table.ts";
import { isAhead, isDue } from "./record/pending.ts";
import { type MissionRecord, nextStep } from "./record/record.ts";
import { readRecord } from "./record/store.ts";
import { reviveAsDecided } from "./start/revive.ts";
import type { Started } from "./start/start-agent.ts";
import { wakePit } from "./supervise/wake-file.ts";

const POLL_MS = 10;
/** How quickly a caller that waits for the next life notices a stop or a revival by another process. */
const WAIT_POLL_MS = 100;

/** Ctrl-C, Ctrl-\ and a service manager's stop. SIGHUP is not: the terminal is gone, but the agent is still wanted. */
const STOP_SIGNALS: readonly NodeJS.Signals[] = ["SIGINT", "SIGQUIT", "SIGTERM"];
const FORWARDED: readonly NodeJS.Signals[] = [...STOP_SIGNALS, "SIGHUP", "SIGUSR1", "SIGUSR2"];

export interface SignalRelay extends Disposable {
  /** Forwards to this process from now on, starting with the signals received so far; undefined: to no process. */
  to(pid: number | undefined): void;
  /** The last request to end. */
  readonly stop: StopRequest | undefined;
  /** The terminal is gone, or the user detaches: nothing more is shown. */
  readonly left: NodeJS.Signals | undefined;
}

export interface RelayOptions {
  /** Both are in the terminal's foreground process group: the terminal itself sends Ctrl-C and Ctrl-\\ to the target. */
  readonly shared?: boolean;
  /** A signal ends only the view, not the agent. */
  readonly leaves?: boolean;
}

/** Catches signals to this process and forwards them. Opened before the target exists, so that no signal is lost. */
export function openSignalRelay(clock: Clock, options: RelayOptions = {}): SignalRelay {
  const queued: NodeJS.Signals[] = [];
  let target: number | undefined;
  let stop: StopRequest | undefined;
  let left: NodeJS.Signals | undefined;
  const receive = (name: NodeJS.Signals) => {
    const isStop = STOP_SIGNALS.includes(name);
    if (name === "SIGHUP" || (isStop && options.leaves)) left = name;
    else if (isStop) stop = { signal: name, atMs: clock.nowMs() };
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
    get left() {
      return left;
    },
    [Symbol.dispose]() {
      for (const name of FORWARDED) process.off(name, receive);
    },
  };
}

export interface ForegroundEnd {
  readonly status: number;
  /** Undefined when another process has already revived the agent. */
  readonly record: MissionRecord | undefined;
  /** Epoch of the life that another process has started since. */
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
    const next = await startNextLife(context, mission, started.epoch, relay, true);
    if (next === undefined) {
      wakePit(context.machine, context.config, mission);
      return end;
    }
    if (typeof next === "number") return { ...end, record: undefined, revivedAs: next };
    started = next;
  }
}

/** Why a view ended although the agent runs: a signal, or null for the user's keys. */
export interface Left {
  readonly signal: NodeJS.Signals | null;
}

export interface LifeViewer {
  /** Shows a life in the user's terminal; undefined when it has ended. */
  view(life: Life): Promise<Left | undefined>;
  /** Called after each life. */
  report(end: ForegroundEnd): void;
}

/**
 * Shows the lives of an agent with its own terminal, one after the other, until the user detaches or no life follows.
 * `life`: undefined when it has ended.
 */
export async function viewLives(
  context: PitContext,
  mission: MissionId,
  first: Pick<Started, "record" | "epoch" | "life">,
  relay: SignalRelay,
  viewer: LifeViewer,
): Promise<ForegroundEnd | Left> {
  const { machine, config } = context;
  for (let { record, epoch, life } = first; ; ) {
    const left = life === undefined ? undefined : await viewer.view(life);
    if (left !== undefined) return left;
    const ended = Promise.resolve();
    const end = await waitForAgent(context, mission, { record, epoch, life: undefined, ended }, relay);
    viewer.report(end);
    const next = end.revivedAs ?? (await startNextLife(context, mission, epoch, relay, false));
    if (next === undefined) {
      wakePit(machine, config, mission);
      return relay.left === undefined ? end : { signal: relay.left };
    }
    epoch = typeof next === "number" ? next : next.epoch;
    // A life that a pit has started may not have recorded itself yet.
    const isStarting = () => readLifeOf(config, mission, epoch) === undefined;
    while (isStarting() && isKeeperAlive(machine.processes, config, mission))
      await machine.clock.sleep(POLL_MS);
    life = readLifeOf(config, mission, epoch);
  }
}

/** Waits until the agent ends and handles the exit, unless another process was faster. */
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
  // Do not wait for a next life that has already been started.
  const isOurs = () => (readLife(config, mission)?.epoch ?? started.epoch) <= started.epoch;
  while (isOurs() && isKeeperAlive(machine.processes, config, mission)) await machine.clock.sleep(POLL_MS);
  const exit = readExitOf(config, mission, started.epoch);
  using _ = await context.lockMission(mission, `end of ${mission}`);
  const found = readRecord(config, mission);
  const graceMs = found === undefined ? 0 : context.settings(found).graceSeconds * 1000;
  const isStopped = isOurs() && endedByRequest(exit, relay.stop, graceMs);
  const result = await handleExit(context, isStopped && found ? recordStop(context, found) : found);
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

/** Undefined: nothing more happens in this terminal. A number: another process has started that life. */
async function startNextLife(
  context: PitContext,
  mission: MissionId,
  epoch: number,
  relay: SignalRelay,
  foreground: boolean,
): Promise<Started | number | undefined> {
  const { machine, config } = context;
  const before = relay.stop;
  for (;;) {
    const record = readRecord(config, mission);
    if (record?.life == null || relay.left !== undefined) return undefined;
    if (record.life.epoch !== epoch) return record.life.epoch;
    if (record.wish !== "running" || nextStep(record) !== "wait") return undefined;
    if (relay.stop === before && isAhead(record, machine.clock.nowMs())) {
      await machine.clock.sleep(WAIT_POLL_MS);
      continue;
    }
    using lock = await context.lockMission(mission, `revival of ${mission}`);
    const exit = await handleExit(context, readRecord(config, mission));
    if (exit.state !== "handled" || exit.record.life?.epoch !== epoch) continue;
    if (relay.stop !== before) recordStop(context, exit.record);
    else if (isDue(exit.record, machine.clock.nowMs()))
      return await reviveAsDecided(context, exit, lock, { foreground });
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
