import { agentDirectory } from "../../../cell/fence.ts";
import { type WatchedEnd, waitForProcess, waitForUnit } from "../../../pit/watched.ts";
import { defineCommand } from "../../command.ts";
import { usage } from "../../parse.ts";
import { runProgram } from "../flows/install-options.ts";

export const command = defineCommand({
  about:
    "Waits for a process or unit that lazarus watch named, and exits when it has ended. Started by the keeper.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {
    pid: { type: "number", value: "PID", summary: "the process" },
    started: { type: "text", value: "TIME", summary: "its start time as the kernel reports it" },
    unit: { type: "text", value: "UNIT", summary: "the systemd unit" },
  },
  examples: [["lazarus watch-wait tidy-inbox --unit=bot.service", "wait for the unit"]],
  exits: [],
  async run(context, { args, options: { pid, started, unit } }) {
    const { machine, signal } = context;
    const hooks = agentDirectory(context.config.config, context.mission(args.mission));
    let end: WatchedEnd;
    if (unit !== undefined) end = await waitForUnit(machine.clock, unit, runProgram, signal);
    else if (pid !== undefined && started !== undefined) {
      const identity = { pid, startTime: started, bootId: machine.processes.bootId() };
      end = await waitForProcess(machine, identity, hooks, signal);
    } else throw usage("watch-wait", "give --unit, or --pid and --started");
    context.say(end.reason);
    return end.exitCode;
  },
});
