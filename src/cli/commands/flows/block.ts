import { changeFlow } from "../../../flow/operations/change.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Marks a flow as blocked: it waits for something external, stays unfinished and can be resumed. Its owner keeps the lock.",
  positionals: [],
  options: {
    ...WORKFLOW_OPTIONS,
    notes: { type: "text", value: "TEXT", summary: "notes stored with the flow; no secrets" },
    ...OWNER_OPTIONS,
  },
  examples: [["lazarus flow block -w report", "waiting for a person"]],
  exits: ["missing", "conflict", "damaged", "machine", "busy", "unsupported"],
  async run(context, { options }) {
    const workflow = required("flow block", "workflow", options.workflow);
    const { place, document, remarks } = await changeFlow(
      workspaceOf(context, options),
      { workflow, agent: options.agent },
      { status: "blocked", notes: options.notes },
      ownerFor(context, options),
    );
    for (const remark of remarks) context.say(shown(remark));
    context.emit("flow/1", { file: place.file, flow: document }, () => `${place.file}\n`);
    return 0;
  },
});
