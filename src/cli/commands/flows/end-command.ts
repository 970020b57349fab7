// `complete`, `fail` and `block` set the status of a flow and differ in nothing else.
import type { FlowStatus } from "../../../flow/document/document.ts";
import { changeFlow } from "../../../flow/operations/change.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export function defineEndCommand(name: string, status: FlowStatus, about: string, purpose: string) {
  return defineCommand({
    about,
    positionals: [],
    options: {
      ...WORKFLOW_OPTIONS,
      notes: { type: "text", value: "TEXT", summary: "notes stored with the flow; no secrets" },
      ...OWNER_OPTIONS,
    },
    examples: [[`lazarus flow ${name} -w report`, purpose]],
    exits: ["missing", "conflict", "damaged", "machine", "busy", "unsupported"],
    async run(context, { options }) {
      const workflow = required(`flow ${name}`, "workflow", options.workflow);
      const { place, document, remarks } = await changeFlow(
        workspaceOf(context, options),
        { workflow, agent: options.agent },
        { status, notes: options.notes },
        ownerFor(context, options),
      );
      for (const remark of remarks) context.say(shown(remark));
      context.emit("flow/1", { file: place.file, flow: document }, () => `${place.file}\n`);
      return 0;
    },
  });
}
