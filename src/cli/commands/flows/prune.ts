import { DEFAULT_KEEP_DAYS, type Pruned, pruneFlows } from "../../../flow/operations/prune.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, ROOT_OPTION, shown, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Removes workflows that have expired and finished ones that are old. Their idempotency keys stay known, so that done " +
    "work is never started again. What a live owner holds is kept, and quarantined files stay.",
  positionals: [],
  options: {
    "keep-days": { type: "number", value: "DAYS", summary: "keep finished ones so long (30)" },
    "dry-run": { type: "flag", summary: "only say what would go" },
    ...OWNER_OPTIONS,
    ...ROOT_OPTION,
  },
  examples: [
    ["lazarus flow prune --dry-run", "what would go?"],
    ["lazarus flow prune --keep-days 7", "finished ones older than a week, and expired ones"],
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
      context.say(`${shown(workflowId)} is kept: a live owner holds it, or runs a command for it`);
    context.say(`${removed.length} ${dryRun ? "would be removed" : "removed"}`);
    return 0;
  },
});
