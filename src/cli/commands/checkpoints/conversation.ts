import type { TranscriptEntry } from "../../../agents/adapter.ts";
import { describePosition } from "../../../agents/conversation/position.ts";
import { readConversation } from "../../../snapshot/operations/read-conversation.ts";
import { defineCommand, MISSION_ARGUMENT } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { openKnownMission } from "../../open-mission.ts";
import { formatCount, formatTime } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";

export const command = defineCommand({
  about:
    "Prints the conversation of an agent CLI, now or as a checkpoint has it: prompts, responses, one line for each tool call. " +
    "Secrets are redacted. The agent's files are only read.",
  positionals: [MISSION_ARGUMENT],
  options: {
    at: { type: "text", value: "CHECKPOINT", summary: "id or its prefix, latest, or a time (default: now)" },
    last: { type: "number", short: "n", value: "N", summary: "print only the last N entries" },
  },
  examples: [
    ["lazarus conversation book", "all of it"],
    ["lazarus conversation book --at '2h ago' -n 10", "the last ten entries of two hours ago"],
  ],
  exits: ["missing", "damaged", "machine"],
  async run(context, { args, options }) {
    using missionContext = openKnownMission(context, context.mission(args.mission));
    const { checkpoint, position, entries } = await readConversation(missionContext, options.at);
    const shown = options.last === undefined ? entries : entries.slice(entries.length - options.last);
    const document = {
      mission_id: missionContext.mission,
      checkpoint_id: checkpoint,
      ...position,
      entries: shown.map(({ role, text, call, atMs }) => ({
        role,
        text,
        tool: call?.tool ?? null,
        at_ms: atMs,
      })),
    };
    context.emit("conversation/1", document, () => shown.map((entry) => entryText(context, entry)).join(""));
    const hidden = entries.length - shown.length;
    context.say(
      `${checkpoint ?? "now"}: ${escapeControls(describePosition(position))}${hidden > 0 ? `; ${formatCount(hidden, "earlier entry", "earlier entries")}` : ""}`,
    );
    return 0;
  },
});

/** Longer results are cut; --json has all of them. */
const RESULT_LINES = 5;

function entryText({ paint }: CliContext, { role, text, call, atMs }: TranscriptEntry): string {
  const time = atMs === null ? "" : paint.dim(`  ${formatTime(atMs)}`);
  if (call !== null)
    return `${paint.cyan(`→ ${escapeControls(call.tool)}`)}  ${escapeControls(call.summary)}\n`;
  const lines = text.trimEnd().split("\n").map(escapeControls);
  if (role !== "tool") return `${paint.bold(role)}${time}\n${indent(lines)}\n`;
  const more = lines.length - RESULT_LINES;
  return paint.dim(indent([...lines.slice(0, RESULT_LINES), ...(more > 0 ? [`… ${more} more lines`] : [])]));
}

function indent(lines: readonly string[]): string {
  return lines.map((line) => `  ${line}\n`).join("");
}
