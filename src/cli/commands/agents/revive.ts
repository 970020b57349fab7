import { type ReviveResult, reviveMission } from "../../../pit/actions.ts";
import type { CallAnswer } from "../../../pit/conversation/record-calls.ts";
import { DECISIONS } from "../../../pit/death/why.ts";
import { describeEnd } from "../../../pit/describe.ts";
import { CALL_OUTCOMES } from "../../../pit/record/conversation.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { usage } from "../../parse.ts";
import { formatCount } from "../../render/format.ts";
import { openCliPitContext } from "./open-pit.ts";
import { refuseInsideLife } from "./refuse-inside-life.ts";

export const command = defineCommand({
  about:
    "Starts an agent again: confirms when the pit asks, overrides a stop, rest, pause or tombstone, and skips the backoff. " +
    "A paused agent continues; one that has exited is started again, with state/resume.json and artifacts/handoff.md to " +
    "tell it where it stopped. A known agent CLI continues its conversation; if a tool call that your effect rules name was cut " +
    "off, --call says whether it happened. A checkpoint of the last life is taken first; if that fails, the agent is not started, unless " +
    "--without-checkpoint is given. Works without a pit. With --dry-run it prints what the pit would decide on its own.",
  positionals: [MISSION_ARGUMENT],
  options: {
    "dry-run": { type: "flag", summary: "print the decision and its reason, do nothing" },
    call: {
      type: "texts",
      value: "[N=]OUTCOME",
      summary: "outcome of a tool call that was cut off (call N in why): done, not-done or unknown",
    },
    "without-checkpoint": { type: "flag", summary: "revive even if the checkpoint of the last life fails" },
  },
  examples: [
    ["lazarus revive tidy-inbox", "start it again"],
    ["lazarus revive tidy-inbox --dry-run", "show what the pit would do"],
    ["lazarus revive tidy-inbox --call done", "the call that was cut off did happen"],
  ],
  exits: ["missing", "conflict", "machine", "busy", "damaged"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    if (!options["dry-run"]) refuseInsideLife(context, "revive", mission);
    using pitContext = openCliPitContext(context);
    const result = await reviveMission(pitContext, mission, {
      dryRun: options["dry-run"],
      withoutCheckpoint: options["without-checkpoint"],
      calls: options.call.map(parseAnswer),
    });
    context.emit("revive/1", { mission_id: mission, ...document(result) }, () => "");
    for (const line of describe(mission, result)) context.say(line);
    return 0;
  },
});

function parseAnswer(text: string): CallAnswer {
  const [, number, word] = /^(?:(\d+)=)?(.*)$/s.exec(text)!;
  const outcome = CALL_OUTCOMES.find((each) => each === word);
  if (outcome === undefined)
    throw usage(
      "revive",
      `--call ${JSON.stringify(text)}: expected ${CALL_OUTCOMES.join(", ")} or N=OUTCOME`,
    );
  return { index: number === undefined ? null : Number(number) - 1, outcome };
}

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
      const { life, epoch, record } = result.started;
      if (life === undefined)
        return [`${mission} started and exited immediately; see: lazarus why ${mission}`];
      const attach = record.terminal == null ? "" : `; use its terminal with: lazarus attach ${mission}`;
      return [`${mission} is running again as life ${epoch} (process ${life.agent.pid})${attach}`];
    }
  }
}
