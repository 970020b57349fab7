import { resolve } from "node:path";
import { turnText } from "../../../agents/conversation/position.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import type { CheckpointRef } from "../../../snapshot/model/entry.ts";
import { previewRestore, type RestoreResult, restoreCell } from "../../../snapshot/operations/restore.ts";
import { restoreTo } from "../../../snapshot/operations/restore-into.ts";
import { findTarget } from "../../../snapshot/operations/restore-target.ts";
import { isEmptyPlan } from "../../../snapshot/restore/plan.ts";
import { CHECKPOINT_ARGUMENT, defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { typedPaths } from "../../here.ts";
import type { CliMission } from "../../open-mission.ts";
import { openKnownMission } from "../../open-mission.ts";
import { usage } from "../../parse.ts";
import { describeChanges } from "../../render/changes.ts";
import { formatBytes, formatCount } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";
import {
  chosenPart,
  concludeRestore,
  describeRef,
  NOT_SAVED,
  PART_OPTIONS,
  restoreDocument,
  restoreWithStop,
  sayDoneSince,
  sayFlaws,
  warnIfAlive,
} from "./restore-report.ts";

export const command = defineCommand({
  about:
    "Restores a cell to a checkpoint. The current state is saved first, so that lazarus undo can bring it back. Only paths " +
    "that differ are changed, and excluded paths are kept. A missing cell is created again. With --to, the checkpoint is " +
    "restored into an empty directory and the cell is not touched. The agent's conversation is restored together with the " +
    "files; --files-only and --conversation-only restore one of the two. Under a live agent a restore is refused, unless " +
    "--stop is given. An interrupted restore is completed by the next " +
    "command for that mission. Times are UTC: 2026-11-15, '2026-11-15 23:53', '2h ago', yesterday.",
  positionals: [MISSION_ARGUMENT, CHECKPOINT_ARGUMENT],
  options: {
    path: {
      type: "texts",
      value: "PATH",
      summary:
        "only this path and what is below it, relative to the cell or the current directory; may be repeated",
    },
    to: { type: "text", value: "DIR", summary: "restore into this new or empty directory" },
    ...PART_OPTIONS,
    stop: { type: "flag", summary: "stop a running agent first and revive it afterwards" },
    "dry-run": { type: "flag", short: "n", summary: "print what would change, do nothing" },
  },
  examples: [
    ["lazarus restore tidy-inbox --dry-run", "show what would change"],
    ["lazarus restore tidy-inbox '2h ago'", "restore the state of two hours ago"],
    ["lazarus restore tidy-inbox 20261115-2353 --path worktree/src", "restore one directory"],
    [
      "lazarus restore tidy-inbox '2h ago' --conversation-only",
      "keep the files, restore only the conversation",
    ],
    ["lazarus restore tidy-inbox '2h ago' --stop", "while its agent is running"],
    ["lazarus restore tidy-inbox latest --to /tmp/copy", "restore elsewhere, to inspect it"],
  ],
  exits: ["degraded", "missing", "conflict", "damaged", "machine", "busy", "interrupted"],
  async run(context, { args, options }) {
    if (options.to !== undefined && options["dry-run"]) {
      throw usage("restore", "--dry-run cannot be combined with --to, which does not touch the cell");
    }
    if (options.stop && (options.to !== undefined || options["dry-run"]))
      throw usage("restore", "--stop cannot be combined with --to or --dry-run, which do not touch the cell");
    const part = chosenPart("restore", options);
    if (part !== undefined && options.to !== undefined)
      throw usage("restore", `--${part}-only cannot be combined with --to; use --path`);
    using missionContext = openKnownMission(context, context.mission(args.mission));
    const paths = typedPaths(context, missionContext, options.path);
    const request = { checkpoint: args.checkpoint, paths, part, signal: context.signal };
    if (options.to !== undefined) return await restoreElsewhere(context, missionContext, request, options.to);
    if (options["dry-run"])
      return preview(context, missionContext, await previewRestore(missionContext, request));
    // Before anything is stopped: afterwards, the checkpoint of the stop is the latest.
    const checkpoint = options.stop ? findTarget(missionContext, args.checkpoint).id : args.checkpoint;
    if (!options.stop) warnIfAlive(context, missionContext);
    const result = await restoreWithStop(context, missionContext, options.stop, (heldLock) =>
      restoreCell(missionContext, { ...request, checkpoint, ...(heldLock && { heldLock }) }),
    );
    missionContext.endProgress();
    const { target, safety, changes } = result;
    const unchanged = isEmptyPlan({ changes });
    context.emit("restore/1", { dry_run: false, ...restoreDocument(missionContext, result) }, () =>
      unchanged
        ? `${missionContext.mission} already matches ${describeRef(target)}; nothing was changed\n`
        : `restored ${missionContext.mission} to ${describeRef(target)}\n${describeChanges(changes, context.paint)}`,
    );
    const exit = concludeRestore(context, result);
    if (safety === null)
      context.say(`the cell was missing and has been created again: ${missionContext.cellRoot}`);
    else if (!unchanged)
      context.say(
        `the previous state is saved as ${safety.id}; to undo: lazarus undo ${missionContext.mission}`,
      );
    else suggestOlderCheckpoint(context, missionContext, target);
    return exit;
  },
});

function preview(context: CliContext, missionContext: CliMission, result: RestoreResult): number {
  missionContext.endProgress();
  const { target, changes } = result;
  context.emit("restore/1", { dry_run: true, ...restoreDocument(missionContext, result) }, () =>
    isEmptyPlan({ changes })
      ? `${missionContext.mission} already matches ${describeRef(target)}; nothing would change\n`
      : `restoring ${missionContext.mission} to ${describeRef(target)} would change\n${describeChanges(changes, context.paint)}`,
  );
  sayFlaws(context, "could not be read:", result.safetyFlaws);
  if (result.conversation !== null)
    context.say(`the conversation there: ${escapeControls(turnText(result.conversation))}`);
  sayDoneSince(context, result.doneSince);
  sayFlaws(context, "would not be restored exactly:", result.flaws);
  sayFlaws(context, NOT_SAVED, result.notSaved);
  if (!isEmptyPlan({ changes }))
    context.say(`nothing was changed; to restore: lazarus restore ${missionContext.mission} ${target.id}`);
  else suggestOlderCheckpoint(context, missionContext, target);
  return 0;
}

/** The newest checkpoint may be a live point that already contains the unwanted change. */
function suggestOlderCheckpoint(context: CliContext, { mission }: CliMission, target: CheckpointRef): void {
  if (target.reason === "live")
    context.say(
      `this is a live point, saved automatically; to go further back: lazarus restore ${mission} 10m; to choose: lazarus checkpoints ${mission} --all`,
    );
}

async function restoreElsewhere(
  context: CliContext,
  missionContext: CliMission,
  request: { checkpoint: string | undefined; paths: readonly string[]; signal: AbortSignal },
  to: string,
): Promise<number> {
  const directory = resolve(context.surroundings.cwd, to);
  const result = await restoreTo(missionContext, { ...request, directory });
  missionContext.endProgress();
  const { target, paths, files, bytes, flaws, notSaved } = result;
  const document = {
    mission_id: missionContext.mission,
    checkpoint_id: target.id,
    directory,
    paths,
    files,
    bytes,
    flaws,
    not_saved: notSaved,
  };
  context.emit("restore-to/1", document, () => `${directory}\n`);
  context.say(
    `restored ${describeRef(target)}: ${formatCount(paths, "path")}, ${formatCount(files, "file")}, ${formatBytes(bytes)}`,
  );
  sayFlaws(context, "not restored exactly:", flaws);
  sayFlaws(context, NOT_SAVED, notSaved);
  return flaws.length + notSaved.length > 0 ? ERROR_KINDS.degraded.exit : 0;
}
