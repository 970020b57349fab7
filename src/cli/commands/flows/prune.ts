import { DEFAULT_KEEP_DAYS, type Pruned, pruneFlows } from "../../../flow/operations/prune.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, ROOT_OPTION, shown, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Removes expired workflows and old finished ones. Their idempotency keys are kept, so that finished work is never " +
    "started again. Workflows with a live owner and quarantined files are kept.",
  positionals: [],
  options: {
    "keep-days": { type: "number", value: "DAYS", summary: "keep finished workflows this long (default 30)" },
    "dry-run": { type: "flag", summary: "print what would be removed, remove nothing" },
    ...OWNER_OPTIONS,
    ...ROOT_OPTION,
  },
  examples: [
    ["lazarus flow prune --dry-run", "show what would be removed"],
    ["lazarus flow prune --keep-days 7", "also finished ones older than a week"],
  ],
  exits: ["missing", "machine", "busy"],
  async run(context, { options }) {
    const dryRun = options["dry-run"];
    const { removed, held } = await pruneFlows(workspaceOf(context, options), {
      me: ownerFor(context, options),
      keepDays: options["keep-days"] ?? DEFAULT_KEEP_DAYS,
      dryRun,
    });
    const line = ({ workflowId, status, why }: Pruned) => `${shown(workflowId)}\t${status}\t${why}\n`;
    context.emit("flow-prune/1", { dryRun, removed, held }, () => removed.map(line).join(""));
    for (const { workflowId } of held)
      context.say(`${shown(workflowId)} is kept: it has a live owner or a running command`);
    context.say(`${removed.length} ${dryRun ? "would be removed" : "removed"}`);
    return 0;
  },
});
