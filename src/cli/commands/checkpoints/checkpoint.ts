import type { MissionId } from "../../../cell/mission-id.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { COMMAND_REASONS } from "../../../snapshot/model/entry.ts";
import type { CheckpointReport } from "../../../snapshot/operations/checkpoint.ts";
import { askPit, type CheckpointRequest } from "../../ask-pit.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { describeFlaws } from "../../render/flaws.ts";
import { formatBytes, formatCount } from "../../render/format.ts";

export const command = defineCommand({
  about:
    "Saves the whole cell: all files, a git commit of the worktree, and the positions of its flows and runs. Only what " +
    "changed since the last checkpoint is stored. Anything that could not be captured exactly is listed, and the exit " +
    "code is then 5.",
  positionals: [MISSION_ARGUMENT],
  options: {
    message: { type: "text", short: "m", value: "TEXT", summary: "a note stored with the checkpoint" },
    reason: {
      type: "text",
      value: "WHY",
      choices: COMMAND_REASONS,
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
    const mission = context.mission(args.mission);
    const request = {
      reason: options.reason ?? "manual",
      message: options.message ?? null,
      agent: options.agent ?? null,
    };
    const { saved, finished } = await takeCheckpoint(context, mission, request);
    context.emit("checkpoint/1", saved, () => `${saved.checkpoint_id}\n`);
    if (finished !== null) {
      context.warn(`completed an interrupted restore of ${finished.target} first`);
      for (const line of describeFlaws(finished.flaws)) context.warn(line);
    }
    context.say(summary(saved));
    for (const line of describeFlaws(saved.flaws)) context.say(line);
    return saved.flaws.length > 0 ? ERROR_KINDS.degraded.exit : 0;
  },
});

/** Taken by the running pit, which knows what changed, or else by this command. */
async function takeCheckpoint(
  context: CliContext,
  mission: MissionId,
  request: CheckpointRequest,
): Promise<CheckpointReport> {
  const answer = await askPit(context, mission, request);
  if (answer?.saved !== undefined) return answer as unknown as CheckpointReport;
  const { takeOwnCheckpoint } = await import("./own-checkpoint.ts");
  return await takeOwnCheckpoint(context, mission, request);
}

function summary({ outcome, parent, counts, git }: CheckpointReport["saved"]): string {
  const whole = `${formatCount(counts.files, "file")}, ${formatBytes(counts.bytes)}`;
  if (outcome === "unchanged")
    return `nothing changed since ${parent}; recorded as a new checkpoint with the same content (${whole})`;
  const stored = `${formatCount(counts.changed, "path")} stored, ${counts.removed} removed, ${formatBytes(counts.stored_bytes)} added to the vault`;
  const commit = git.commit === null ? "" : `\ngit commit ${git.commit.slice(0, 12)} at ${git.ref}`;
  return `saved ${whole}: ${stored}${commit}`;
}
