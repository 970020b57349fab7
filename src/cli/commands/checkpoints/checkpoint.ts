import { setFlagsFromString } from "node:v8";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { REASONS, type Reason } from "../../../snapshot/model/entry.ts";
import { type CheckpointResult, takeCheckpoint } from "../../../snapshot/operations/checkpoint.ts";
import { defineCommand } from "../../command.ts";
import { describeLost, findLost, openCliMission } from "../../open-mission.ts";
import { describeFlaws } from "../../render/flaws.ts";
import { formatBytes, formatCount } from "../../render/format.ts";

export const command = defineCommand({
  about:
    "Saves the whole cell: all files, a git commit of the worktree, and the positions of its flows and runs. Only what " +
    "changed since the last checkpoint is stored. Anything that could not be captured exactly is listed, and the exit " +
    "code is then 5.",
  positionals: [{ name: "mission", summary: "id of the mission (default: of this directory)", here: true }],
  options: {
    message: { type: "text", short: "m", value: "TEXT", summary: "a note stored with the checkpoint" },
    reason: {
      type: "text",
      value: "WHY",
      choices: REASONS.filter((reason) => reason !== "live"),
      summary: "reason stored with the checkpoint (default manual)",
    },
    agent: { type: "text", value: "NAME", summary: "name of the agent in the cell" },
  },
  examples: [
    ["lazarus checkpoint tidy-inbox", "save the cell now"],
    ['lazarus checkpoint tidy-inbox -m "before the migration"', "with a note"],
  ],
  exits: ["degraded", "missing", "machine", "busy", "damaged"],
  async run(context, { args, options }) {
    // A checkpoint keeps nearly all that it allocates, and V8 would add 100 MB to the young generation for it.
    setFlagsFromString("--semi-space-growth-factor=1");
    using missionContext = openCliMission(context, context.mission(args.mission));
    const lost = findLost(context, missionContext);
    if (lost.length > 0)
      context.warn(`${describeLost(missionContext, lost)}; this checkpoint starts a new vault`);
    const result = await takeCheckpoint(missionContext, {
      reason: (options.reason ?? "manual") as Reason,
      message: options.message ?? null,
      agent: options.agent ?? null,
    });
    missionContext.endProgress();
    const { metadata } = result.checkpoint;
    const degraded = result.flaws.length > 0;
    context.emit(
      "checkpoint/1",
      {
        mission_id: metadata.mission,
        checkpoint_id: result.ref.id,
        outcome: result.outcome,
        parent: result.ref.parent,
        counts: metadata.counts,
        git: metadata.git,
        flaws: result.flaws,
      },
      () => `${result.ref.id}\n`,
    );
    if (result.finished !== undefined) {
      context.warn(`completed an interrupted restore of ${result.finished.target} first`);
      for (const line of describeFlaws(result.finished.flaws)) context.warn(line);
    }
    context.say(summary(result));
    for (const line of describeFlaws(result.flaws)) context.say(line);
    return degraded ? ERROR_KINDS.degraded.exit : 0;
  },
});

function summary({ outcome, ref, checkpoint }: CheckpointResult): string {
  const { counts, git } = checkpoint.metadata;
  const whole = `${counts.files} files, ${formatBytes(counts.bytes)}`;
  if (outcome === "unchanged")
    return `nothing changed since ${ref.parent}; recorded as a new checkpoint with the same content (${whole})`;
  const stored = `${formatCount(counts.changed, "path")} stored, ${counts.removed} removed, ${formatBytes(counts.stored_bytes)} added to the vault`;
  const commit = git.commit === null ? "" : `\ngit commit ${git.commit.slice(0, 12)} at ${git.ref}`;
  return `saved ${whole}: ${stored}${commit}`;
}
