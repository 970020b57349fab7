import { FLOW_STATUSES } from "../../flow/document.ts";
import { listFlows } from "../../flow/list.ts";
import { defineCommand } from "../command.ts";
import { ROOT_OPTION, shown, workspaceOf } from "../flow-space.ts";

export const command = defineCommand({
  about:
    "Lists all workflows, one line each, separated by tabs: id, status, step at hand, time of the last change. Bad files " +
    "are listed as INVALID with the reason and where they lie. It only reads.",
  positionals: [],
  options: {
    status: { type: "texts", choices: FLOW_STATUSES, summary: "only these; may be repeated" },
    agent: { type: "text", value: "NAME", summary: "only this agent's" },
    ...ROOT_OPTION,
  },
  examples: [
    ["lazarus flow list", "everything"],
    ["lazarus flow list --status in_progress --status blocked", "what is unfinished"],
  ],
  exits: ["machine"],
  run(context, { options }) {
    const { flows, bad } = listFlows(workspaceOf(context, options).root);
    const wanted = flows.filter(
      ({ document }) =>
        (options.status.length === 0 || options.status.includes(document.status)) &&
        (options.agent === undefined || document.agentId === options.agent),
    );
    context.emit(
      "flow-list/1",
      { flows: wanted.map(({ place, document }) => ({ file: place.file, ...document })), invalid: bad },
      () => {
        const lines = wanted.map(
          ({ document }) =>
            `${shown(document.workflowId)}\t${document.status}\t${shown(document.currentStep)}\t${document.updatedAt}\n`,
        );
        for (const { workflowId, file, reason } of bad) {
          lines.push(`${shown(workflowId)}\tINVALID\t${shown(reason)}\t${shown(file)}\n`);
        }
        return lines.join("");
      },
    );
    if (flows.length + bad.length === 0)
      context.say("no workflows yet; make one with: lazarus flow start --help");
    return 0;
  },
});
