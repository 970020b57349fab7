import { ERROR_KINDS } from "../../../platform/errors.ts";
import { REASONS, type Reason } from "../../../snapshot/model/entry.ts";
import { type CheckpointResult, takeCheckpoint } from "../../../snapshot/operations/checkpoint.ts";
import { defineCommand } from "../../command.ts";
import { describeLost, findLost, openCliMission } from "../../open-mission.ts";
import { describeFlaws } from "../../render/flaws.ts";
import { formatBytes, formatCount } from "../../render/format.ts";

export const command = defineCommand({
  about:
    "Saves the whole cell: every file as it is, a git commit of the worktree, and where its flows and runs stand. Only " +
    "what changed since the last checkpoint is stored. What could not be captured exactly is listed, and the exit code " +
    "is then 5.",
  positionals: [{ name: "mission", summary: "id of the mission" }],
  options: {
    message: { type: "text", short: "m", value: "TEXT", summary: "what this checkpoint is for" },
    reason: { type: "text", value: "WHY", choices: [...REASONS], summary: "why it is taken (manual)" },
    agent: { type: "text", value: "NAME", summary: "who works in the cell" },
  },
  examples: [
    ["lazarus checkpoint tidy-inbox", "save it now"],
    ['lazarus checkpoint tidy-inbox -m "before the migration"', "with a word why"],
  ],
  exits: ["degraded", "missing", "machine", "busy", "damaged"],
  async run(context, { args, options }) {
    using missionContext = openCliMission(context, context.mission(args.mission));
    const lost = findLost(context, missionContext);
    if (lost.length > 0) context.warn(`${describeLost(missionContext, lost)}; this one begins a new vault`);
    const result = await takeCheckpoint(missionContext, {
      reason: (options.reason ?? "manual") as Reason,
      message: options.message ?? null,
      agent: options.agent ?? null,
    });
    missionContext.endProgress();
    const { metadata } = result.checkpoint;
    const flawed = result.flaws.length > 0;
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
      context.warn(`an interrupted restore of ${result.finished.target} was finished first`);
      for (const line of describeFlaws(result.finished.flaws)) context.warn(line);
    }
    context.say(summary(result));
    for (const line of describeFlaws(result.flaws)) context.say(line);
    return flawed ? ERROR_KINDS.degraded.exit : 0;
  },
});

function summary({ outcome, ref, checkpoint }: CheckpointResult): string {
  const { counts, git } = checkpoint.metadata;
  const whole = `${counts.files} files, ${formatBytes(counts.bytes)}`;
  if (outcome === "unchanged")
    return `nothing changed since ${ref.parent}; it is saved again under a new name (${whole})`;
  const stored = `${formatCount(counts.changed, "path")} stored, ${counts.removed} removed, ${formatBytes(counts.stored_bytes)} added to the vault`;
  const commit = git.commit === null ? "" : `\ngit commit ${git.commit.slice(0, 12)} at ${git.ref}`;
  return `saved ${whole}: ${stored}${commit}`;
}
