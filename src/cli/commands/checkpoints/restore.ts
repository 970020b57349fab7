import { resolve } from "node:path";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { previewRestore, type RestoreResult, restoreCell } from "../../../snapshot/operations/restore.ts";
import { restoreTo } from "../../../snapshot/operations/restore-into.ts";
import { isEmptyPlan } from "../../../snapshot/restore/plan.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import type { CliMission } from "../../open-mission.ts";
import { openKnownMission } from "../../open-mission.ts";
import { usage } from "../../parse.ts";
import { describeChanges } from "../../render/changes.ts";
import { formatBytes } from "../../render/format.ts";
import { concludeRestore, describeRef, restoreDocument, sayFlaws, warnIfAlive } from "./restore-report.ts";

export const command = defineCommand({
  about:
    "Puts a cell back to a checkpoint. What is there now is saved first, so that lazarus undo goes back; only paths that " +
    "differ are touched; what the checkpoint had left out is kept. A cell that is gone is made anew. With --to the " +
    "checkpoint goes into an empty directory instead and the cell is not touched. A restore that was killed is finished " +
    "by the next command for that mission. Times are UTC: 2026-11-15, '2026-11-15 23:53', '2h ago', yesterday.",
  positionals: [
    { name: "mission", summary: "id of the mission" },
    { name: "checkpoint", summary: "id, beginning of one, latest, or a time (latest)", optional: true },
  ],
  options: {
    path: {
      type: "texts",
      value: "PATH",
      summary: "only this path of the cell and what is below it; may be repeated",
    },
    to: { type: "text", value: "DIR", summary: "restore into this empty or new directory" },
    "dry-run": { type: "flag", short: "n", summary: "only show what would change" },
  },
  examples: [
    ["lazarus restore tidy-inbox --dry-run", "what would the latest checkpoint change?"],
    ["lazarus restore tidy-inbox '2h ago'", "as it was two hours ago"],
    ["lazarus restore tidy-inbox 20261115-2353 --path worktree/src", "one directory of it"],
    ["lazarus restore tidy-inbox latest --to /tmp/look", "beside, to look at it"],
  ],
  exits: ["degraded", "missing", "conflict", "damaged", "machine", "busy", "interrupted"],
  async run(context, { args, options }) {
    if (options.to !== undefined && options["dry-run"]) {
      throw usage("restore", "--dry-run shows what would change in the cell; with --to nothing in it does");
    }
    using missionContext = openKnownMission(context, context.mission(args.mission));
    const asked = { checkpoint: args.checkpoint, paths: options.path, signal: context.signal };
    if (options.to !== undefined) return await beside(context, missionContext, asked, options.to);
    if (options["dry-run"])
      return preview(context, missionContext, await previewRestore(missionContext, asked));
    warnIfAlive(context, missionContext);
    const result = await restoreCell(missionContext, asked);
    missionContext.endProgress();
    const { target, safety, changes } = result;
    const nothing = isEmptyPlan({ changes });
    context.emit("restore/1", { dry_run: false, ...restoreDocument(missionContext, result) }, () =>
      nothing
        ? `${missionContext.mission} is already as in ${describeRef(target)}; nothing was touched\n`
        : `restored ${missionContext.mission} to ${describeRef(target)}\n${describeChanges(changes, context.paint)}`,
    );
    const exit = concludeRestore(context, result);
    if (safety === null) context.say(`the cell was gone and was made anew: ${missionContext.cellRoot}`);
    else if (!nothing)
      context.say(
        `what was there is saved as ${safety.id}; to go back to it: lazarus undo ${missionContext.mission}`,
      );
    return exit;
  },
});

function preview(context: CliContext, missionContext: CliMission, result: RestoreResult): number {
  missionContext.endProgress();
  const { target, changes } = result;
  context.emit("restore/1", { dry_run: true, ...restoreDocument(missionContext, result) }, () =>
    isEmptyPlan({ changes })
      ? `${missionContext.mission} is already as in ${describeRef(target)}; nothing would be touched\n`
      : `restoring ${missionContext.mission} to ${describeRef(target)} would mean\n${describeChanges(changes, context.paint)}`,
  );
  sayFlaws(context, "could not be looked at:", result.safetyFlaws);
  if (!isEmptyPlan({ changes }))
    context.say(`nothing was touched; to do it: lazarus restore ${missionContext.mission} ${target.id}`);
  return 0;
}

async function beside(
  context: CliContext,
  missionContext: CliMission,
  asked: { checkpoint: string | undefined; paths: readonly string[]; signal: AbortSignal },
  to: string,
): Promise<number> {
  const directory = resolve(context.surroundings.cwd, to);
  const result = await restoreTo(missionContext, { ...asked, directory });
  missionContext.endProgress();
  const { target, paths, files, bytes, flaws } = result;
  const document = {
    mission_id: missionContext.mission,
    checkpoint_id: target.id,
    directory,
    paths,
    files,
    bytes,
    flaws,
  };
  context.emit("restore-to/1", document, () => `${directory}\n`);
  context.say(
    `restored ${describeRef(target)} into it: ${paths} paths, ${files} files, ${formatBytes(bytes)}`,
  );
  sayFlaws(context, "not restored exactly:", flaws);
  return flaws.length > 0 ? ERROR_KINDS.degraded.exit : 0;
}
