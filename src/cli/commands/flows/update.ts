import { FLOW_STATUSES, type FlowStatus } from "../../../flow/document/document.ts";
import { changeFlow } from "../../../flow/operations/change.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, required, shown, WORKFLOW_OPTIONS, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Says how far the work is; an agent calls it after each step. Completing a step twice is harmless. When the step at " +
    "hand is completed and no next one is named, the first remaining step is next. A workflow that another live owner " +
    "has locked is refused. Durable when it returns.",
  positionals: [],
  options: {
    ...WORKFLOW_OPTIONS,
    complete: { type: "texts", value: "STEP", summary: "this step is done; may be repeated" },
    step: { type: "text", value: "STEP", summary: "the step at hand now" },
    status: { type: "text", choices: FLOW_STATUSES, summary: "in_progress, blocked, done or failed" },
    notes: { type: "text", value: "TEXT", summary: "data for whoever resumes; no secrets" },
    handoff: { type: "text", value: "NAME", summary: "who takes it over" },
    "ttl-days": { type: "number", value: "DAYS", summary: "let it expire so many days from now" },
    ...OWNER_OPTIONS,
  },
  examples: [
    ["lazarus flow update -w report --complete fetch", "fetch is done, on to the next"],
    ["lazarus flow update -w report --complete fetch --step write", "the same, naming it"],
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
