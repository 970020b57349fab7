import { changeFlow } from "../../../flow/operations/change.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "The work is done: nothing remains, the lock is let go, and its idempotency key is known as done from now on. Saying it twice is harmless.",
  positionals: [],
  options: {
    ...WORKFLOW_OPTIONS,
    notes: { type: "text", value: "TEXT", summary: "data for whoever looks at it; no secrets" },
    ...OWNER_OPTIONS,
  },
  examples: [["lazarus flow complete -w report", "all of it is done"]],
  exits: ["missing", "conflict", "damaged", "machine", "busy", "unsupported"],
  async run(context, { options }) {
    const workflow = required("flow complete", "workflow", options.workflow);
    const { place, document, remarks } = await changeFlow(
      workspaceOf(context, options),
      { workflow, agent: options.agent },
      { status: "done", notes: options.notes },
      ownerFor(context, options),
    );
    for (const remark of remarks) context.say(shown(remark));
    context.emit("flow/1", { file: place.file, flow: document }, () => `${place.file}\n`);
    return 0;
  },
});
