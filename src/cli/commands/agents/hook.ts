import { realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { BUILT_IN, findAdapter } from "../../../agents/adapters.ts";
import { isDangerous } from "../../../agents/dangerous-call.ts";
import { isUrgent } from "../../../agents/hook-lines.ts";
import { isNested } from "../../../agents/nested.ts";
import { receiveHook } from "../../../agents/receive-hook.ts";
import type { Config } from "../../../cell/config.ts";
import { epochOf } from "../../../cell/fence.ts";
import { beat } from "../../../cell/heartbeat.ts";
import { cellPaths } from "../../../cell/layout.ts";
import { isMissionId, type MissionId } from "../../../cell/mission-id.ts";
import { findProtecting } from "../../../cell/worktree-record.ts";
import { wakePit } from "../../../pit/supervise/wake-file.ts";
import { appendLine, makeDirectory } from "../../../platform/durable.ts";
import { messageOf } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { readInput } from "../../terminal.ts";

/** A tool call may contain a whole file. */
const INPUT_LIMIT_BYTES = 64 * 1024 * 1024;
const LOG_LIMIT_BYTES = 256 * 1024;

export const command = defineCommand({
  about:
    "Called by the hooks of an agent's CLI, with what they report as JSON on stdin or as the last argument: tool calls, " +
    "the end of a turn, compaction, failures. Lazarus uses it to know which session to resume, what was in flight when " +
    "the agent died, and whether it finished. lazarus run passes these hooks automatically. In an agent that belongs to no mission " +
    "it does nothing. Before a command that deletes or overwrites many files, it waits up to 2 seconds for a live point. It " +
    "always exits 0 and never disturbs the agent; problems are written to hook.log in run_dir.",
  positionals: [
    { name: "agent", summary: "name of the agent's CLI, such as claude" },
    { name: "event", summary: "the event, or its JSON", optional: true },
  ],
  options: {
    installed: { type: "flag", summary: "called from the user's own config: ignored when run passes hooks" },
  },
  examples: [
    ["lazarus hook claude", "what a hook of Claude Code runs; the event is on stdin"],
    ["lazarus hook mybot turn-end", "what your own script can report"],
  ],
  exits: [],
  async run(context, { args, options }) {
    try {
      await report(context, args.agent, args.event, options.installed);
    } catch (error) {
      logProblem(context, args.agent, error);
    }
    return 0;
  },
});

async function report(
  context: CliContext,
  agent: string,
  argument: string | undefined,
  installed: boolean,
): Promise<void> {
  if (installed && context.surroundings.env.LAZARUS_HOOKS === "run") return;
  const reporter = findReporter(context, installed);
  if (reporter === undefined || isNested(process.ppid, [{ programs: [agent], packages: [] }, ...BUILT_IN]))
    return;
  const { mission, epoch } = reporter;
  const isJson = argument?.trimStart().startsWith("{") === true;
  const { config } = context.config;
  const { events, stdout } = receiveHook(context.machine, config, {
    mission,
    epoch,
    adapter: findAdapter(agent),
    event: isJson ? undefined : argument,
    input: isJson ? argument : readInput(INPUT_LIMIT_BYTES),
  });
  if (stdout !== "") context.terminal.out(`${stdout}\n`);
  if (events.some(isUrgent)) wakePit(context.machine, config, mission);
  if (epoch !== 0) beatIfDue(context, config, mission, epoch);
  if (!events.some(isDangerous)) return;
  const { askForLivePoint } = await import("../../ask-pit.ts");
  await askForLivePoint(context, mission);
}

/** The life that the hook belongs to; epoch 0 for an agent in a protected directory that Lazarus did not start. */
function findReporter(
  context: CliContext,
  installed: boolean,
): { readonly mission: MissionId; readonly epoch: number } | undefined {
  const { env, cwd } = context.surroundings;
  const named = env.LAZARUS_MISSION;
  if (named !== undefined) {
    const epoch = epochOf(env, named);
    return epoch === undefined || !isMissionId(named) ? undefined : { mission: named, epoch };
  }
  if (!installed) return undefined;
  const mission = findProtecting(context.config.config.missions_root, realpathSync(cwd))?.mission_id;
  return mission === undefined || !isMissionId(mission) ? undefined : { mission, epoch: 0 };
}

function beatIfDue({ machine }: CliContext, config: Config, mission: MissionId, epoch: number): void {
  const file = cellPaths(config, mission).heartbeatFile;
  const beatMs = statSync(file, { throwIfNoEntry: false })?.mtimeMs ?? 0;
  const ageMs = machine.clock.nowMs() - beatMs;
  if (ageMs >= 0 && ageMs < config.heartbeat_interval_seconds * 1000) return;
  beat(machine, config, mission, { epoch });
}

/** stderr of a hook is shown to the user or the model by some CLIs. */
function logProblem(context: CliContext, agent: string, error: unknown): void {
  try {
    const { machine, config } = context;
    const file = join(config.config.run_dir, "hook.log");
    if ((statSync(file, { throwIfNoEntry: false })?.size ?? 0) > LOG_LIMIT_BYTES) return;
    makeDirectory(machine.disk, config.config.run_dir);
    const time = new Date(machine.clock.nowMs()).toISOString();
    appendLine(machine.disk, file, `${time} ${agent}: ${messageOf(error).replaceAll("\n", " ")}`);
  } catch {
    // There is nowhere left to report it; the agent must not be disturbed.
  }
}
