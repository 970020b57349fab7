import { acceptEdit } from "../../../flow/operations/accept-edit.ts";
import { defineCommand } from "../../command.ts";
import { required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Accepts a workflow file whose hash does not match, because it was edited by hand or quarantined: check the file first, " +
    "then this command computes its hash again and puts it back. A file that is damaged in another way must be edited " +
    "first; the error message names it.",
  positionals: [],
  options: WORKFLOW_OPTIONS,
  examples: [["lazarus flow accept-edit -w report", "accept the current content"]],
  exits: ["missing", "conflict", "damaged", "machine", "busy", "unsupported"],
  async run(context, { options }) {
    const workflow = required("flow accept-edit", "workflow", options.workflow);
    const { place, document, from } = await acceptEdit(workspaceOf(context, options), {
      workflow,
      agent: options.agent,
    });
    context.emit("flow/1", { file: place.file, flow: document, from }, () => `${place.file}\n`);
    context.say(`${place.stem} is ${document.status} at step ${JSON.stringify(shown(document.currentStep))}`);
    return 0;
  },
});
