// The moments of a fake agent as hook events in Claude's shape, under the names that an agent gives them.
import type { JsonObject } from "../../../src/platform/json-file.ts";
import type { Moment, Profile } from "./profile.ts";

type Kind = Moment["kind"];

/** `names`: the events that this agent has. `tool`: its shell tool. `hasIds`: whether its hooks name the call. */
export function hookEvents(
  names: Partial<Record<Kind, string>>,
  tool: string,
  hasIds: boolean,
): Profile["events"] {
  return (moment, { id, path, cwd }) => {
    const event = names[moment.kind];
    if (event === undefined) return [];
    const common = { session_id: id, transcript_path: path, cwd, hook_event_name: event };
    const isTool = moment.kind === "before-tool" || moment.kind === "after-tool";
    return [{ event, ...(isTool && { tool }), input: { ...common, ...details(moment, tool, hasIds) } }];
  };
}

function details(moment: Moment, tool: string, hasIds: boolean): JsonObject {
  switch (moment.kind) {
    case "session":
      return { source: moment.resumed ? "resume" : "startup" };
    case "prompt":
      return { prompt: moment.text };
    case "before-tool":
    case "after-tool": {
      const { id, command } = moment.call;
      const call = { tool_name: tool, tool_input: { command }, ...(hasIds && { tool_use_id: id }) };
      return moment.kind === "before-tool" ? call : { ...call, tool_response: moment.text };
    }
    case "done":
      return { stop_hook_active: false, last_assistant_message: moment.text };
    case "failure":
      return { error: "unknown", last_assistant_message: moment.text };
    case "session-end":
      return { reason: moment.reason };
  }
}
