import { mendFlow } from "../../../flow/operations/accept-edit.ts";
import { defineCommand } from "../../command.ts";
import { required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Takes a workflow back that was put in quarantine, or edited by hand, because its hash does not match: after you have " +
    "looked at it, its content is accepted as it is and sealed anew. A file that is damaged in other ways is named, to " +
    "be edited first.",
  positionals: [],
  options: WORKFLOW_OPTIONS,
  examples: [["lazarus flow mend -w report", "I have looked; take it as it is"]],
  exits: ["missing", "conflict", "damaged", "machine", "busy", "unsupported"],
  async run(context, { options }) {
    const workflow = required("flow mend", "workflow", options.workflow);
    const { place, document, from } = await mendFlow(workspaceOf(context, options), {
      workflow,
      agent: options.agent,
    });
    context.emit("flow/1", { file: place.file, flow: document, from }, () => `${place.file}\n`);
    context.say(`${place.stem} is ${document.status} at step ${JSON.stringify(shown(document.currentStep))}`);
    return 0;
  },
});
