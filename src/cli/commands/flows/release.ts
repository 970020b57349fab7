import { releaseFlow } from "../../../flow/operations/change.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, required, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Releases the resume lock of a workflow, so that another process can resume it. Its steps do not change. The lock of " +
    "another live owner is released only with --steal-lock.",
  positionals: [],
  options: {
    ...WORKFLOW_OPTIONS,
    "steal-lock": { type: "flag", summary: "release it even if another live process owns it" },
    ...OWNER_OPTIONS,
  },
  examples: [["lazarus flow release -w report", "let another process continue"]],
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
    context.say(released ? `released the lock of ${place.stem}` : `${place.stem} was not locked`);
    return 0;
  },
});
