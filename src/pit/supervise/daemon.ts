// The pit: one per home, by kernel lock. It adopts the agents that live, notices when one is gone, keeps the scene,
// decides and revives. All it knows is on disk: killed at any line and started again, it goes on where it was. What it
// does about one mission happens one thing at a time; different missions do not wait for each other, up to a limit.
import { mkdirSync } from "node:fs";
import { dirname } from "node:path";
import { beatJob } from "../../cell/job.ts";
import type { MissionId } from "../../cell/mission-id.ts";
import { LazarusError } from "../../platform/errors.ts";
import { type Lock, type LockOwner, readLockOwner, tryAcquireLock } from "../../platform/lock.ts";
import { createServiceNotify } from "../../service/notify.ts";
import type { PitContext } from "../context.ts";
import { capture, settleLife } from "../death/handle-exit.ts";
import { endProcesses } from "../death/kill.ts";
import { describeError } from "../describe.ts";
import { pitLockFile } from "../paths.ts";
import { nextStep, noteStall, type RecordedDecision } from "../record/record.ts";
import { listAgents, readRecord, writeRecord } from "../record/store.ts";
import { checkPitSettings } from "../settings.ts";
import { lifeGoesOn, readLife } from "../start/life.ts";
import { reviveAgent } from "../start/revive.ts";
import { createRounds } from "./periodic-checks.ts";
import { type Reading, regrace, sleptMs, wasSetBack } from "./stall.ts";
import { createTaskQueue } from "./task-queue.ts";
import { listen } from "./wake-file.ts";
import { createWatchList } from "./watch-list.ts";

export interface Pit {
  readonly context: PitContext;
  /** Looks at a mission soon. */
  look(mission: MissionId): void;
  /** Works until the signal, then takes the shutdown checkpoints and ends. Agents go on. */
  run(signal: AbortSignal): Promise<void>;
  readonly watching: number;
}

const TICK_MS = 50;
const RESCAN_MS = 5000;
const RETRY_MS = 30_000;
const STARTING_MS = 200;
const SHUTDOWN_MS = 60_000;
const LOCK_WAIT_MS = 2000;
const LOCK_LOOK_MS = 10;
/** How many missions are worked on at a time: checkpoints use all cores already. */
const AT_ONCE = 4;

export async function openPit(context: PitContext): Promise<Pit & Disposable> {
  const { machine, config } = context;
  const { clock } = machine;
  const unused = checkPitSettings(context.effective.document, context.effective.file);
  const lock = await takePitLock(context);
  const watched = createWatchList(machine.processes);
  /** When to look at a mission again, by the wall clock: a reset at nine is at nine, however long the host slept. */
  const due = new Map<MissionId, number>();
  const troubles = new Map<MissionId, string>();
  let sleptUntilMs: number | undefined;
  let stopping = false;
  const queue = createTaskQueue<MissionId>(AT_ONCE, attend);
  const rounds = createRounds(context, watched);

  const look = (mission: MissionId) => {
    if (!stopping) queue.add(mission);
  };
  const lookAt = (mission: MissionId, atMs: number) => {
    due.set(mission, atMs);
  };

  async function attend(mission: MissionId): Promise<void> {
    due.delete(mission);
    rounds.forget(mission);
    try {
      await attendTo(mission);
      troubles.delete(mission);
    } catch (error) {
      trouble(mission, error);
    }
  }

  /** Said once, tried again and again. */
  function trouble(mission: MissionId, error: unknown): void {
    const words = describeError(error);
    if (troubles.get(mission) !== words) {
      context.log(`${mission}: ${words}`);
      context.recordEvent({ kind: "alert", mission, data: { action: "trouble", reason: words } });
      troubles.set(mission, words);
    }
    lookAt(mission, clock.nowMs() + RETRY_MS);
  }

  async function attendTo(mission: MissionId): Promise<void> {
    const record = readRecord(config, mission);
    if (record === undefined || record.life === null) return watched.remove(mission);
    if (lifeGoesOn(machine.processes, config, mission)) return adopt(mission, record.life.epoch);
    watched.remove(mission);
    const step = nextStep(record);
    if (step === "nothing") return;
    // Not due yet: nothing to lock for.
    if (step === "wait" && record.wish === "running" && isAhead(record.decision!, clock.nowMs()))
      return lookAt(mission, record.decision!.at_ms!);
    using _ = await context.lockMission(mission, `pit: end of ${mission}`);
    const settled = await settleLife(context, mission, { sleptUntilMs });
    if (settled.state === "alive") return lookAt(mission, clock.nowMs());
    if (settled.state === "unkept") throw settled.error;
    if (settled.state === "none") return;
    await pursue(mission);
  }

  /** Acts on a decision whose time has come. Under the mission's lock; the record is read again there. */
  async function pursue(mission: MissionId): Promise<void> {
    const record = readRecord(config, mission)!;
    const { decision } = record;
    if (decision === null || nextStep(record) !== "wait" || record.wish !== "running" || stopping) {
      if (decision !== null) context.log(`${mission}: ${decision.action}: ${decision.reason}`);
      return;
    }
    if (decision.at_ms! > clock.nowMs()) {
      context.log(`${mission}: ${decision.action}: ${decision.reason}`);
      return lookAt(mission, decision.at_ms!);
    }
    const started = await reviveAgent(context, mission, record, {
      how: decision.action === "substitute" ? "substitute" : "revival",
      stepBackTo: decision.step_back_to,
      reason: decision.reason,
    });
    context.log(`${mission}: life ${started.epoch} began: ${decision.reason}`);
    if (started.life === undefined) lookAt(mission, clock.nowMs());
    else adopt(mission, started.epoch);
  }

  function adopt(mission: MissionId, epoch: number): void {
    const life = readLife(config, mission);
    // Just starting: it will say who it is in a moment.
    const known =
      life !== undefined && life.epoch >= epoch && watched.add(mission, life, clock.monotonicMs());
    if (!known) lookAt(mission, clock.nowMs() + STARTING_MS);
  }

  async function endStalled(mission: MissionId, reason: string): Promise<void> {
    {
      using _ = await context.lockMission(mission, `pit: stall of ${mission}`);
      const record = readRecord(config, mission);
      if (record?.wish !== "running" || !lifeGoesOn(machine.processes, config, mission)) return;
      writeRecord(machine, config, noteStall(record, clock.nowMs(), reason));
      context.log(`${mission}: stalled: ${reason}`);
      await endProcesses(context, mission, context.settings(mission, record.agent).graceSeconds * 1000);
    }
    look(mission);
  }

  async function run(signal: AbortSignal): Promise<void> {
    const notify = createServiceNotify(context.environment, process.pid);
    using _ = listen(config, look, (line) =>
      context.log(`what commands change is seen up to ${RESCAN_MS / 1000} s later: ${line}`),
    );
    for (const mission of listAgents(config)) look(mission);
    notify.send("READY=1");
    for (const line of unused) context.log(line);
    context.log(`the pit is open: ${config.missions_root} (process ${process.pid})`);
    const beatEveryMs = config.heartbeat_interval_seconds * 1000;
    const last = { beatMs: Number.NEGATIVE_INFINITY, rescanMs: clock.monotonicMs(), watchdogMs: 0 };
    let reading: Reading = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
    while (!signal.aborted) {
      const now: Reading = { wallMs: clock.nowMs(), monotonicMs: clock.monotonicMs() };
      const slept = sleptMs(reading, now);
      // What was put off is looked at now; what must wait is put off again, by the new time.
      if (wasSetBack(reading, now)) for (const mission of due.keys()) due.set(mission, now.wallMs);
      reading = now;
      if (slept > 0) {
        sleptUntilMs = now.wallMs;
        context.log(
          `the host slept for ${Math.round(slept / 1000)} s, or its clock was set: every limit begins anew`,
        );
        for (const one of watched.all()) one.clocks = one.clocks && regrace(one.clocks, now.monotonicMs);
      }
      for (const mission of watched.ended()) {
        watched.remove(mission);
        look(mission);
      }
      for (const [mission, atMs] of due) if (atMs <= now.wallMs) look(mission);
      if (now.monotonicMs - last.beatMs >= beatEveryMs) {
        last.beatMs = now.monotonicMs;
        const { error } = beatJob(machine, config, config.heartbeat_job, {
          intervalSeconds: config.heartbeat_interval_seconds,
        });
        if (error !== undefined) context.log(error.message);
      }
      if (notify.watchdogMs !== undefined && now.monotonicMs - last.watchdogMs >= notify.watchdogMs) {
        last.watchdogMs = now.monotonicMs;
        notify.send("WATCHDOG=1");
      }
      if (now.monotonicMs - last.rescanMs >= RESCAN_MS) {
        last.rescanMs = now.monotonicMs;
        rescan();
      }
      for (const { mission, reason } of rounds.findStalled(now.monotonicMs))
        queue.addWork(mission, () => endStalled(mission, reason).catch((error) => trouble(mission, error)));
      for (const { mission, agent } of rounds.dueCheckpoints(now.monotonicMs))
        queue.addWork(mission, () =>
          capture(context, mission, "scheduled", null, agent).then(
            () => {},
            (error) => trouble(mission, error),
          ),
        );
      rounds.boundLogs(now.monotonicMs);
      await clock.sleep(TICK_MS, signal);
    }
    stopping = true;
    notify.send("STOPPING=1");
    await shutDown();
  }

  /** What bells and descriptors missed: missions that appeared, and agents that nobody watches. */
  function rescan(): void {
    for (const mission of listAgents(config)) {
      if (watched.get(mission) === undefined && !due.has(mission) && rounds.mayNeed(mission)) look(mission);
    }
  }

  async function shutDown(): Promise<void> {
    const deadlineMs = clock.monotonicMs() + SHUTDOWN_MS;
    const waited = new AbortController();
    await Promise.race([queue.idle(), clock.sleep(SHUTDOWN_MS, waited.signal)]);
    waited.abort();
    for (const { mission } of [...watched.all()]) {
      try {
        const record = readRecord(config, mission);
        if (record === undefined || !context.settings(mission, record.agent).checkpointAtShutdown) continue;
        if (clock.monotonicMs() > deadlineMs)
          context.log(`${mission}: no time was left for its last checkpoint`);
        else await capture(context, mission, "shutdown", null, record.agent);
      } catch (error) {
        context.log(`${mission}: no checkpoint at shutdown: ${describeError(error)}`);
      }
    }
    beatJob(machine, config, config.heartbeat_job, {
      intervalSeconds: config.heartbeat_interval_seconds,
      status: "stopped",
    });
    context.log(`the pit is closed; ${watched.size} agents go on under their keepers`);
  }

  return {
    context,
    look,
    run,
    get watching() {
      return watched.size;
    },
    [Symbol.dispose]() {
      stopping = true;
      watched.clear();
      lock[Symbol.dispose]();
    },
  };
}

/** Its time has not come. A decision from later than now is of a clock that was set back since, and wants a look. */
function isAhead(decision: RecordedDecision, nowMs: number): boolean {
  return decision.decided_ms <= nowMs && nowMs < decision.at_ms!;
}

async function takePitLock({ machine, config }: PitContext): Promise<Lock> {
  const path = pitLockFile(config.run_dir);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const deadlineMs = machine.clock.monotonicMs() + LOCK_WAIT_MS;
  let owner: LockOwner | undefined;
  do {
    const lock = tryAcquireLock(machine, path, "pit");
    if (lock !== undefined) return lock;
    // Another pit that has not said its name yet, or someone who only looks whether there is one.
    owner = readLockOwner(path);
    if (owner !== undefined && machine.processes.identify(owner.pid) !== undefined) break;
    await machine.clock.sleep(LOCK_LOOK_MS);
  } while (machine.clock.monotonicMs() < deadlineMs);
  throw new LazarusError(
    "PIT_RUNNING",
    `a pit is open already for ${config.missions_root}${owner ? `: process ${owner.pid} on ${owner.host}` : ""}`,
    {
      hint: owner ? `look at it with: ps -p ${owner.pid} -f` : "lazarus status",
      details: { owner: owner ?? null },
    },
  );
}
