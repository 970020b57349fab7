import { changeFlow } from "../../../flow/operations/change.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Marks a flow as failed and releases its lock. It is not resumed automatically; to continue it, use flow update --status in_progress, or start over.",
  positionals: [],
  options: {
    ...WORKFLOW_OPTIONS,
    notes: { type: "text", value: "TEXT", summary: "notes stored with the flow; no secrets" },
    ...OWNER_OPTIONS,
  },
  examples: [["lazarus flow fail -w report", "mark it as failed"]],
  exits: ["missing", "conflict", "damaged", "machine", "busy", "unsupported"],
  async run(context, { options }) {
    const workflow = required("flow fail", "workflow", options.workflow);
    const { place, document, remarks } = await changeFlow(
      workspaceOf(context, options),
      { workflow, agent: options.agent },
      { status: "failed", notes: options.notes },
      ownerFor(context, options),
    );
    for (const remark of remarks) context.say(shown(remark));
    context.emit("flow/1", { file: place.file, flow: document }, () => `${place.file}\n`);
    return 0;
  },
});
