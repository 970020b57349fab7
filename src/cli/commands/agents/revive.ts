import { type ReviveResult, reviveMission } from "../../../pit/actions.ts";
import { DECISIONS } from "../../../pit/death/why.ts";
import { describeEnd } from "../../../pit/describe.ts";
import { defineCommand } from "../../command.ts";
import { formatCount } from "../../render/format.ts";
import { openCliPitContext } from "./open-pit.ts";
import { refuseInsideLife } from "./refuse-inside-life.ts";

export const command = defineCommand({
  about:
    "Starts an agent again: confirms when the pit asks, overrides a stop, rest, pause or tombstone, and skips the backoff. " +
    "A paused agent continues; one that has exited is started again, with state/resume.json and artifacts/handoff.md to " +
    "tell it where it stopped. A checkpoint of the last life is taken first; if that fails, the agent is not started, unless " +
    "--without-checkpoint is given. Works without a pit. With --dry-run it prints what the pit would decide on its own.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {
    "dry-run": { type: "flag", summary: "print the decision and its reason, do nothing" },
    "without-checkpoint": { type: "flag", summary: "revive even if the checkpoint of the last life fails" },
  },
  examples: [
    ["lazarus revive tidy-inbox", "start it again"],
    ["lazarus revive tidy-inbox --dry-run", "show what the pit would do"],
  ],
  exits: ["missing", "conflict", "machine", "busy", "damaged"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    if (!options["dry-run"]) refuseInsideLife(context, "revive", mission);
    using pitContext = openCliPitContext(context);
    const result = await reviveMission(pitContext, mission, {
      dryRun: options["dry-run"],
      withoutCheckpoint: options["without-checkpoint"],
    });
    context.emit("revive/1", { mission_id: mission, ...document(result) }, () => "");
    for (const line of describe(mission, result)) context.say(line);
    return 0;
  },
});

function document(result: ReviveResult): object {
  switch (result.outcome) {
    case "started":
      return {
        outcome: result.outcome,
        epoch: result.started.epoch,
        pid: result.started.life?.agent.pid ?? null,
      };
    case "would-start":
      return { outcome: result.outcome, decision: result.decision };
    default:
      return { outcome: result.outcome };
  }
}

function describe(mission: string, result: ReviveResult): string[] {
  switch (result.outcome) {
    case "running":
      return [`${mission} is already running`];
    case "continued":
      return [`${mission} continues (${formatCount(result.processes, "process", "processes")})`];
    case "would-start": {
      const { end } = result.record;
      return [
        `${mission}: ${end === null ? "no exit is recorded" : describeEnd(end)}`,
        `the pit would decide: ${DECISIONS[result.decision.action]}: ${result.decision.reason}`,
        `to revive it anyway: lazarus revive ${mission}`,
      ];
    }
    case "started": {
      const pid = result.started.life?.agent.pid;
      return [
        pid === undefined
          ? `${mission} started and exited immediately; see: lazarus why ${mission}`
          : `${mission} is running again as life ${result.started.epoch} (process ${pid})`,
      ];
    }
  }
}
