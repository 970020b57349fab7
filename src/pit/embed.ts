// Supervision inside another program: starts, stops and revives agents of one home, and runs the pit's loop. The same
// operations as the commands and the HTTP API; the agents survive this program, since each has its own keeper.
import type { EventEmitter } from "node:events";
import { resolve } from "node:path";
import type { EffectiveConfig } from "../cell/config.ts";
import { homeConfig } from "../cell/home-config.ts";
import { parseMissionId } from "../cell/mission-id.ts";
import { LazarusError } from "../platform/errors.ts";
import { type Machine, systemMachine } from "../platform/machine.ts";
import { VERSION } from "../platform/version.ts";
import type { EventChannels } from "../registry/registry.ts";
import type { CaptureResult } from "../snapshot/capture/capture.ts";
import type { RestoreResult } from "../snapshot/operations/restore.ts";
import { checkpointMission, pauseMission, type ReviveResult, reviveMission } from "./actions.ts";
import { openPitContext } from "./context.ts";
import type { ReviveMode } from "./record/record.ts";
import { type RestoreRequest, restoreMission } from "./restore.ts";
import { inheritable } from "./start/agent-environment.ts";
import { startMission } from "./start-mission.ts";
import { restMission, type StopOptions, type StopResult, stopMission } from "./stop.ts";
import { openPit } from "./supervise/daemon.ts";
import { type MissionView, viewMission, viewMissions } from "./view.ts";

/** Which home to supervise, and where log lines and warnings go. */
export interface SupervisorOptions {
  /** The directory that holds cells, vaults and the registry, as in LAZARUS_HOME. */
  readonly home?: string;
  /** A loaded configuration, instead of `home`. */
  readonly config?: EffectiveConfig;
  readonly machine?: Machine;
  /** Environment of agents and git. Default: none, not even PATH. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
  log?(line: string): void;
  warn?(line: string): void;
}

/** An agent to start. */
export interface AgentOptions {
  readonly command: readonly string[];
  /** Name of the agent, for its settings. Default: the command's name. */
  readonly agent?: string;
  /** Working directory. Default: the cell's worktree. */
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  /** What to do when it dies. Default: the setting `pit.revive`. */
  readonly revive?: ReviveMode;
  /** The command to start instead, with `revive: "substitute"`. */
  readonly substitute?: readonly string[];
  readonly stallSeconds?: number;
  /** Starts a revival instead of `command`. */
  readonly resumeCommand?: readonly string[];
  /** Start this command although another one is due to be revived. */
  readonly replace?: boolean;
}

/** Which checkpoint to restore, and whether to stop a live agent for it. */
export type SupervisedRestore = RestoreRequest;

/** A life of an agent. */
export interface StartedAgent {
  readonly epoch: number;
  /** Null when it ended before it could be identified. */
  readonly pid: number | null;
}

/** Supervises the agents of one home. */
export interface Supervisor extends Disposable {
  /** Emits `event` for every event that this program records. */
  readonly events: EventEmitter<EventChannels>;
  /** Starts an agent; creates its cell if it does not exist. */
  start(mission: string, agent: AgentOptions): Promise<StartedAgent>;
  /** Stops an agent after a checkpoint. It stays stopped, even after a reboot, until it is started or revived. */
  stop(mission: string, options?: StopOptions): Promise<StopResult>;
  /** Asks an agent to exit, with a longer grace period than `stop`; `revive` starts it again. */
  rest(mission: string, options?: StopOptions): Promise<StopResult>;
  /** Suspends an agent's processes; `revive` continues them. */
  pause(mission: string): Promise<{ processes: number }>;
  /** Revives an agent now, regardless of what the pit decided. */
  revive(mission: string): Promise<ReviveResult>;
  checkpoint(mission: string, message?: string): Promise<CaptureResult>;
  /** Restores a cell. With `stop`, a live agent is stopped first and revived afterwards; without, it is refused. */
  restore(mission: string, options?: SupervisedRestore): Promise<RestoreResult>;
  /** The state of a mission; undefined when it has no cell and never had an agent. */
  view(mission: string): MissionView | undefined;
  /** The state of every mission, by name. */
  list(): MissionView[];
  /** Runs the pit until the signal aborts: checkpoints, revivals, stall detection. Throws PIT_RUNNING if one is running. */
  run(signal: AbortSignal): Promise<void>;
}

/**
 * Opens a home for supervision.
 *
 * @example
 * using supervisor = openSupervisor({ home: "/srv/lazarus", environment: process.env });
 * await supervisor.start("fix-login", { command: ["claude", "-p", "fix the login"], revive: "yes" });
 * await supervisor.run(AbortSignal.timeout(3_600_000));
 */
export function openSupervisor(options: SupervisorOptions): Supervisor {
  const effective = options.config ?? (options.home === undefined ? undefined : homeConfig(options.home));
  if (effective === undefined) {
    throw new LazarusError("USAGE", "openSupervisor needs a home or a config", {
      hint: 'openSupervisor({ home: "/srv/lazarus" })',
    });
  }
  const context = openPitContext({
    machine: options.machine ?? systemMachine,
    effective,
    version: VERSION,
    environment: { ...options.environment, ...(options.home && { LAZARUS_HOME: resolve(options.home) }) },
    cwd: "/",
    log: (line) => options.log?.(line),
    warn: (line) => options.warn?.(line),
  });
  return {
    events: context.events,
    async start(mission, agent) {
      const started = await startMission(context, specFor(mission, agent), {
        replace: agent.replace === true,
        environment: { ...inheritable(context.environment), ...agent.env },
      });
      return { epoch: started.epoch, pid: started.life?.agent.pid ?? null };
    },
    stop: async (mission, stop) => stopMission(context, parseMissionId(mission), stop),
    rest: async (mission, stop) => restMission(context, parseMissionId(mission), stop),
    pause: async (mission) => pauseMission(context, parseMissionId(mission)),
    revive: async (mission) => reviveMission(context, parseMissionId(mission)),
    checkpoint: async (mission, message) => checkpointMission(context, parseMissionId(mission), message),
    restore: (mission, restore) => restoreMission(context, parseMissionId(mission), restore),
    view: (mission) => viewMission(context, parseMissionId(mission)),
    list: () => viewMissions(context),
    async run(signal) {
      using pit = await openPit(context);
      await pit.run(signal);
    },
    [Symbol.dispose]: () => context[Symbol.dispose](),
  };
}

function specFor(mission: string, agent: AgentOptions): Parameters<typeof startMission>[1] {
  const [program] = agent.command;
  if (program === undefined) {
    throw new LazarusError("USAGE", `the command for ${mission} is empty`, {
      hint: 'start("m", { command: ["claude", "-p", "…"] })',
    });
  }
  return {
    mission,
    agent: agent.agent ?? program.slice(program.lastIndexOf("/") + 1),
    command: agent.command,
    cwd: agent.cwd ?? null,
    env: {},
    revive: agent.revive ?? null,
    substitute: agent.substitute ?? null,
    ...(agent.resumeCommand === undefined ? {} : { resume_command: agent.resumeCommand }),
    stall_seconds: agent.stallSeconds ?? null,
  };
}
