import { startFlow } from "../../../flow/operations/start.ts";
import { defineCommand } from "../../command.ts";
import { OWNER_OPTIONS, ownerFor, ROOT_OPTION, required, workspaceOf } from "./flow-space.ts";

export const command = defineCommand({
  about:
    "Creates a workflow file before the work starts, and prints its path. Refuses to replace an unfinished workflow of " +
    "that name without --force, and always refuses an idempotency key whose work is done: use a new key for another run. " +
    "Text that contains a secret is refused.",
  positionals: [{ name: "step", summary: "more remaining steps", optional: true, variadic: true }],
  options: {
    workflow: {
      type: "text",
      short: "w",
      value: "ID",
      summary: "id of the workflow: letters, digits, dashes",
    },
    agent: { type: "text", value: "NAME", summary: "name of the agent" },
    step: { type: "text", value: "STEP", summary: "the first step" },
    idempotency: {
      type: "text",
      value: "KEY",
      summary: "unique key of this work, for example invoice-2026-11",
    },
    remaining: { type: "texts", value: "STEP", summary: "remaining steps; may be repeated or list several" },
    handoff: { type: "text", value: "NAME", summary: "agent that should continue the flow" },
    notes: { type: "text", value: "TEXT", summary: "notes for the next owner; no secrets" },
    "ttl-days": { type: "number", value: "DAYS", summary: "days until it expires (default 7)" },
    force: { type: "flag", summary: "replace an unfinished workflow of this name" },
    "per-agent": { type: "flag", summary: "store it in agents/NAME/ instead of the workspace" },
    ...OWNER_OPTIONS,
    ...ROOT_OPTION,
  },
  examples: [
    [
      "lazarus flow start -w report --agent anna --idempotency report-11 --step fetch --remaining write send",
      "three steps",
    ],
    ["lazarus flow resume --workflow report", "after a restart"],
  ],
  exits: ["missing", "conflict", "damaged", "machine", "busy", "unsupported"],
  async run(context, { args, options }) {
    const name = "flow start";
    const { place, document } = await startFlow(
      workspaceOf(context, options),
      {
        workflow: required(name, "workflow", options.workflow),
        agent: required(name, "agent", options.agent),
        step: required(name, "step", options.step),
        idempotency: required(name, "idempotency", options.idempotency),
        remaining: [...options.remaining, ...args.step],
        handoff: options.handoff,
        notes: options.notes,
        ttlDays: options["ttl-days"],
      },
      { me: ownerFor(context, options), force: options.force, perAgent: options["per-agent"] },
    );
    context.emit("flow/1", { file: place.file, flow: document }, () => `${place.file}\n`);
    return 0;
  },
});
