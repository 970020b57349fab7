import { resolve } from "node:path";
import { isKnownMission, unknownMission } from "../../../cell/known-missions.ts";
import { cellPaths } from "../../../cell/layout.ts";
import type { MissionId } from "../../../cell/mission-id.ts";
import { findTemplateProblem } from "../../../pit/start/resume-command.ts";
import { startMission } from "../../../pit/start-mission.ts";
import { pitOwner } from "../../../pit/view.ts";
import { otherSupervisor, readUnit } from "../../../pit/watched.ts";
import { LazarusError } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";
import { runProgram } from "../flows/install-options.ts";
import { openCliPitContext } from "./open-pit.ts";
import { refuseInsideLife } from "./refuse-inside-life.ts";

export const command = defineCommand({
  about:
    "Watches an agent that Lazarus did not start: a process, a systemd unit, or one that only sends heartbeats. When it ends, " +
    "its mission is saved and reported as for any agent, and the command after -- is started, if you give one. lazarus stop " +
    "ends a watched process or unit. An agent that another supervisor restarts is left alone: a unit with Restart=, a " +
    "background session of Claude Code. To save an existing directory, run lazarus protect first.",
  positionals: [{ name: "mission", summary: "id of the mission", here: true }],
  options: {
    pid: { type: "number", value: "PID", summary: "watch this process" },
    unit: { type: "text", value: "UNIT", summary: "watch this systemd unit" },
    heartbeat: { type: "flag", summary: "watch only its heartbeats" },
  },
  passthrough: "command…",
  examples: [
    ["lazarus watch tidy-inbox --pid 4711", "save and report when the process ends"],
    ["lazarus watch tidy-inbox --unit bot.service", "the same for a unit"],
    ["lazarus watch tidy-inbox --pid 4711 -- claude -p --continue 'continue'", "then start this command"],
  ],
  exits: ["missing", "conflict", "machine", "busy", "unsupported"],
  async run(context, { args, options, rest }) {
    const mission = context.mission(args.mission);
    refuseInsideLife(context, "watch", mission);
    const given = [options.pid !== undefined, options.unit !== undefined, options.heartbeat].filter(Boolean);
    if (given.length !== 1) throw usage("watch", "give one of --pid PID, --unit UNIT, --heartbeat");
    const problem = rest.length === 0 ? undefined : findTemplateProblem(rest);
    if (problem !== undefined) throw usage("watch", `the command after --: ${problem}`);
    if (options.heartbeat) return watchHeartbeat(context, mission, rest);
    const { waiter, supervisor } =
      options.pid === undefined ? unitWaiter(options.unit!) : processWaiter(context, options.pid);
    if (supervisor !== undefined && rest.length > 0)
      throw usage("watch", `${supervisor} starts it again; omit the command after --`);
    return await startWatching(context, mission, waiter, rest);
  },
});

interface Watched {
  readonly waiter: readonly string[];
  readonly supervisor: string | undefined;
}

function processWaiter({ machine }: CliContext, pid: number): Watched {
  const identity = Number.isSafeInteger(pid) && pid > 1 ? machine.processes.identify(pid) : undefined;
  if (identity === undefined)
    throw new LazarusError("NOT_FOUND", `there is no process ${pid}`, {
      hint: "ps -ef, to list the processes",
    });
  return { waiter: [`--pid=${pid}`, `--started=${identity.startTime}`], supervisor: otherSupervisor(pid) };
}

function unitWaiter(unit: string): Watched {
  const { LoadState: load, Restart: restart } = readUnit(unit, runProgram);
  if (load !== "loaded")
    throw new LazarusError("NOT_FOUND", `systemd has no unit ${unit}`, {
      hint: "systemctl list-units --all",
    });
  return {
    waiter: [`--unit=${unit}`],
    supervisor: restart === undefined || restart === "no" ? undefined : `systemd (Restart=${restart})`,
  };
}

async function startWatching(
  context: CliContext,
  mission: MissionId,
  waiter: readonly string[],
  revival: readonly string[],
): Promise<number> {
  using pitContext = openCliPitContext(context);
  const program = [process.execPath, resolve(process.argv[1] ?? "")];
  const started = await startMission(
    pitContext,
    {
      mission,
      agent: "watched",
      command: [...program, "watch-wait", mission, ...waiter],
      cwd: null,
      env: {},
      revive: revival.length === 0 ? "no" : "yes",
      substitute: null,
      resume_command: revival.length === 0 ? null : revival,
      stall_seconds: null,
    },
    { adapter: false },
  );
  context.emit("watch/1", { mission_id: mission, epoch: started.epoch }, () => `${mission}\n`);
  context.say(
    revival.length === 0
      ? "watching; when it ends, it is saved and reported; nothing is started, because no command was given"
      : `watching; when it ends, this is started: ${revival.join(" ")}`,
  );
  if (pitOwner(pitContext) === undefined)
    context.say("no pit is running, so its end is handled only after one is started: lazarus pit");
  return 0;
}

/** Nothing to start: the pit checks every cell that has no agent. */
function watchHeartbeat(context: CliContext, mission: MissionId, revival: readonly string[]): number {
  const { config } = context.config;
  if (!isKnownMission(config, mission)) throw unknownMission(config, mission);
  if (revival.length > 0)
    throw usage(
      "watch",
      "an agent without heartbeats may still be running, so a command needs --pid or --unit",
    );
  const { heartbeatFile } = cellPaths(config, mission);
  context.emit("watch/1", { mission_id: mission, epoch: null }, () => `${mission}\n`);
  context.say(
    `the pit saves ${mission} and alerts when ${heartbeatFile} is older than ${config.stale_after_seconds} s; send heartbeats with: lazarus heartbeat ${mission}`,
  );
  return 0;
}
