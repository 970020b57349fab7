import { type ReviveResult, reviveMission } from "../../../pit/actions.ts";
import { describeEnd } from "../../../pit/describe.ts";
import { defineCommand } from "../../command.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Brings an agent back: answers when the pit asks, lifts a stop, rest, pause or tombstone, and cuts a wait short. A " +
    "paused agent goes on; one that is gone is started again, with state/resume.json and artifacts/handoff.md to tell it " +
    "where it was. Works without a pit. With --dry-run it says what the policy would do by itself, and does nothing.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: { "dry-run": { type: "flag", summary: "only say what would be decided, and why" } },
  examples: [
    ["lazarus revive tidy-inbox", "back to work"],
    ["lazarus revive tidy-inbox --dry-run", "what would the pit do?"],
  ],
  exits: ["missing", "conflict", "machine", "busy", "damaged"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    using pitContext = openCliPitContext(context);
    const result = await reviveMission(pitContext, mission, { dryRun: options["dry-run"] });
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
      return [`${mission} is running already`];
    case "continued":
      return [`${mission} goes on (${result.processes} processes)`];
    case "would-start": {
      const { end } = result.record;
      return [
        `${mission}: ${end === null ? "nothing is known of its end" : describeEnd(end)}`,
        `the policy would say ${result.decision.action}: ${result.decision.reason}`,
        `your word overrules it: lazarus revive ${mission}`,
      ];
    }
    case "started": {
      const pid = result.started.life?.agent.pid;
      return [
        pid === undefined
          ? `${mission} was started and ended at once; see: lazarus why ${mission}`
          : `${mission} is back at work as life ${result.started.epoch} (process ${pid})`,
      ];
    }
  }
}
