import { FLOW_STATUSES } from "../../../flow/document/document.ts";
import { visitFlows } from "../../../flow/document/list.ts";
import { defineCommand } from "../../command.ts";
import { ROOT_OPTION, shown, workspaceOf } from "./flow-space.ts";

const FLUSH_AT = 32 * 1024;

export const command = defineCommand({
  about:
    "Lists all workflows, one per line, with tab-separated fields: id, status, current step, time of the last change. " +
    "Invalid files are listed as INVALID with the reason and their path. Read-only.",
  positionals: [],
  options: {
    status: { type: "texts", choices: FLOW_STATUSES, summary: "only these statuses; may be repeated" },
    agent: { type: "text", value: "NAME", summary: "only workflows of this agent" },
    ...ROOT_OPTION,
  },
  examples: [
    ["lazarus flow list", "all workflows"],
    ["lazarus flow list --status in_progress --status blocked", "unfinished workflows"],
  ],
  exits: ["missing", "machine"],
  run(context, { options }) {
    const { json } = context.globals;
    const { root } = workspaceOf(context, options);
    const flows: object[] = [];
    let text = "";
    let seen = 0;
    const bad = visitFlows(root, (place, document) => {
      seen += 1;
      if (options.status.length > 0 && !options.status.includes(document.status)) return;
      if (options.agent !== undefined && document.agentId !== options.agent) return;
      // Last, so that a field of the document cannot override it.
      if (json) flows.push({ ...document, file: place.file });
      else
        text += `${shown(place.stem)}\t${document.status}\t${shown(document.currentStep)}\t${document.updatedAt}\n`;
      // Flushed along the way: keeping all lines costs as much in garbage collection as reading the files.
      if (text.length > FLUSH_AT) {
        context.terminal.out(text);
        text = "";
      }
    });
    for (const { workflowId, file, reason } of bad) {
      text += `${shown(workflowId)}\tINVALID\t${shown(reason)}\t${shown(file)}\n`;
    }
    context.emit("flow-list/1", { flows, invalid: bad }, () => text);
    if (seen + bad.length === 0) context.say("no workflows yet; see: lazarus flow start --help");
    return 0;
  },
});
