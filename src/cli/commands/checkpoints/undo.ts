import { findUndo, undoRestore } from "../../../snapshot/operations/undo.ts";
import { isEmptyPlan } from "../../../snapshot/restore/plan.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import { openKnownMission } from "../../open-mission.ts";
import { describeChanges } from "../../render/changes.ts";
import {
  chosenPart,
  concludeRestore,
  describeRef,
  PART_OPTIONS,
  restoreDocument,
  restoreWithStop,
  warnIfAlive,
} from "./restore-report.ts";

export const command = defineCommand({
  about:
    "Undoes the last restore: brings the cell back to its state right before it. The current state is saved first, so " +
    "that a second undo redoes the restore.",
  positionals: [MISSION_ARGUMENT],
  options: {
    ...PART_OPTIONS,
    stop: { type: "flag", summary: "stop a running agent first and revive it afterwards" },
  },
  examples: [["lazarus undo tidy-inbox", "undo a wrong restore"]],
  exits: ["degraded", "missing", "damaged", "machine", "busy", "interrupted"],
  async run(context, { args, options }) {
    const part = chosenPart("undo", options);
    using missionContext = openKnownMission(context, context.mission(args.mission));
    // Before anything is stopped.
    if (options.stop) findUndo(missionContext.vault.list(), missionContext.mission);
    else warnIfAlive(context, missionContext);
    const result = await restoreWithStop(context, missionContext, options.stop, (heldLock) =>
      undoRestore(missionContext, context.signal, heldLock, part),
    );
    missionContext.endProgress();
    const { target, undone, changes } = result;
    const unchanged = isEmptyPlan({ changes });
    context.emit("undo/1", { undone, ...restoreDocument(missionContext, result) }, () =>
      unchanged
        ? `${missionContext.mission} already matches its state before the restore of ${undone}; nothing was changed\n`
        : `undid the restore of ${undone}: ${missionContext.mission} is back at ${describeRef(target)}\n${describeChanges(changes, context.paint)}`,
    );
    const exit = concludeRestore(context, result);
    if (!unchanged) {
      context.say(
        `to redo: lazarus undo ${missionContext.mission}, or lazarus restore ${missionContext.mission} ${result.safety?.id ?? undone}`,
      );
    }
    return exit;
  },
});
