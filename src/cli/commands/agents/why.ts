import { unknownMission } from "../../../cell/known-missions.ts";
import { previewEnd } from "../../../pit/death/collect-facts.ts";
import { explain, renderWhy } from "../../../pit/death/why.ts";
import { pitOwner, viewMission } from "../../../pit/view.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { escapeControls } from "../../render/paint.ts";
import { openCliPitContext } from "./open-pit.ts";

export const command = defineCommand({
  about:
    "Explains how the agent ended: exit code or signal, likely cause (out of memory, suspended machine, quota, " +
    "overloaded provider, full disk), what the pit decided and why, and what to type next.",
  positionals: [MISSION_ARGUMENT],
  options: {},
  examples: [["lazarus why tidy-inbox", "explain the last exit"]],
  exits: ["missing", "machine"],
  async run(context, { args }) {
    const mission = context.mission(args.mission);
    using pitContext = openCliPitContext(context);
    const view = viewMission(pitContext, mission);
    if (view === undefined) {
      throw unknownMission(context.config.config, mission);
    }
    const postMortem = explain(view, {
      nowMs: context.machine.clock.nowMs(),
      pitRuns: pitOwner(pitContext) !== undefined,
      preview: view.record && view.state === "ending" ? await previewEnd(pitContext, view.record) : undefined,
    });
    // The agent's last output is untrusted text.
    context.emit(
      "why/1",
      postMortem,
      () => `${renderWhy(postMortem).trimEnd().split("\n").map(escapeControls).join("\n")}\n`,
    );
    return 0;
  },
});
