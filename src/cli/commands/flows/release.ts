import { releaseFlow } from "../../../flow/operations/change.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, required, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Lets go of a workflow's resume lock, so that someone else can resume it. Its steps stay as they are. The lock of " +
    "another live owner goes only with --steal-lock.",
  positionals: [],
  options: {
    ...WORKFLOW_OPTIONS,
    "steal-lock": { type: "flag", summary: "remove it even from a live owner" },
    ...OWNER_OPTIONS,
  },
  examples: [["lazarus flow release -w report", "I stop here; someone else may go on"]],
  exits: ["missing", "damaged", "machine", "busy"],
  async run(context, { options }) {
    const workflow = required("flow release", "workflow", options.workflow);
    const { place, released } = await releaseFlow(
      workspaceOf(context, options),
      { workflow, agent: options.agent },
      ownerFor(context, options),
      options["steal-lock"],
    );
    context.emit("flow-release/1", { workflowId: place.stem, released }, () => `${place.file}\n`);
    context.say(released ? `${place.stem} is free` : `${place.stem} was not locked`);
    return 0;
  },
});
