import { FLOW_STATUSES, type FlowStatus } from "../../../flow/document/document.ts";
import { changeFlow } from "../../../flow/operations/change.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Records the progress of a workflow; agents call it after each step. Completing a step twice is harmless. If the " +
    "current step is completed and --step is not given, the first remaining step becomes current. A workflow locked by " +
    "another live owner is refused. The change is durable when the command returns.",
  positionals: [],
  options: {
    ...WORKFLOW_OPTIONS,
    complete: { type: "texts", value: "STEP", summary: "mark this step as done; may be repeated" },
    step: { type: "text", value: "STEP", summary: "the new current step" },
    status: { type: "text", choices: FLOW_STATUSES, summary: "the new status" },
    notes: { type: "text", value: "TEXT", summary: "notes for the next owner; no secrets" },
    handoff: { type: "text", value: "NAME", summary: "agent that should continue the flow" },
    "ttl-days": { type: "number", value: "DAYS", summary: "expire this many days from now" },
    ...OWNER_OPTIONS,
  },
  examples: [
    ["lazarus flow update -w report --complete fetch", "complete fetch and go to the next step"],
    ["lazarus flow update -w report --complete fetch --step write", "the same, with the next step given"],
  ],
  exits: ["missing", "conflict", "damaged", "machine", "busy", "unsupported"],
  async run(context, { options }) {
    const workflow = required("flow update", "workflow", options.workflow);
    const { place, document, remarks } = await changeFlow(
      workspaceOf(context, options),
      { workflow, agent: options.agent },
      {
        complete: options.complete,
        step: options.step,
        status: options.status as FlowStatus | undefined,
        notes: options.notes,
        handoff: options.handoff,
        ttlDays: options["ttl-days"],
      },
      ownerFor(context, options),
    );
    for (const remark of remarks) context.say(shown(remark));
    context.emit("flow/1", { file: place.file, flow: document }, () => `${place.file}\n`);
    return 0;
  },
});
