import { undoRestore } from "../../../snapshot/operations/undo.ts";
import { isEmptyPlan } from "../../../snapshot/restore/plan.ts";
import { defineCommand } from "../../command.ts";
import { openKnownMission } from "../../open-mission.ts";
import { describeChanges } from "../../render/changes.ts";
import { concludeRestore, describeRef, restoreDocument, warnIfAlive } from "./restore-report.ts";

export const command = defineCommand({
  about:
    "Takes the last restore back: the cell becomes what it was right before it. What is there now is saved first, so " +
    "that a second undo goes forth again.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {},
  examples: [["lazarus undo tidy-inbox", "that was the wrong checkpoint"]],
  exits: ["degraded", "missing", "damaged", "machine", "busy", "interrupted"],
  async run(context, { args }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    warnIfAlive(context, missionContext);
    const result = await undoRestore(missionContext, context.signal);
    missionContext.endProgress();
    const { target, undone, changes } = result;
    const nothing = isEmptyPlan({ changes });
    context.emit("undo/1", { undone, ...restoreDocument(missionContext, result) }, () =>
      nothing
        ? `${missionContext.mission} is already as it was before the restore of ${undone}; nothing was touched\n`
        : `undid the restore of ${undone}: ${missionContext.mission} is again as in ${describeRef(target)}\n${describeChanges(changes, context.paint)}`,
    );
    const exit = concludeRestore(context, result);
    if (!nothing) {
      context.say(
        `to go forth again: lazarus undo ${missionContext.mission}, or lazarus restore ${missionContext.mission} ${result.safety?.id ?? undone}`,
      );
    }
    return exit;
  },
});
