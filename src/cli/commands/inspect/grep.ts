import { ERROR_KINDS, messageOf } from "../../../platform/errors.ts";
import { readPathHistory } from "../../../snapshot/operations/path-history.ts";
import { type Found, searchText } from "../../../snapshot/operations/search-text.ts";
import { createScope } from "../../../snapshot/restore/scope.ts";
import { defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { typedPaths } from "../../here.ts";
import { openKnownMission } from "../../open-mission.ts";
import { usage } from "../../parse.ts";
import { formatCount } from "../../render/format.ts";
import { escapeControls } from "../../render/paint.ts";
import { findPoint, splitPoint, warnUnreadable } from "./point.ts";

export const command = defineCommand({
  about:
    "Searches the text of files in all checkpoints, including versions that were overwritten or deleted since. Each match " +
    "is printed as CHECKPOINT:PATH:LINE:TEXT, with the newest checkpoint that has this version of the file. Exits 6 when " +
    "nothing matches.",
  positionals: [
    {
      name: "mission",
      summary: "id of the mission, or MISSION:CHECKPOINT for one checkpoint (default: of this directory)",
      here: true,
    },
    { name: "text", summary: "the text to find" },
  ],
  options: {
    regexp: { type: "flag", short: "e", summary: "the text is a JavaScript regular expression" },
    "ignore-case": { type: "flag", short: "i", summary: "ignore upper and lower case" },
    path: { type: "texts", value: "PATH", summary: "only this path and below; may be repeated" },
  },
  examples: [
    ["lazarus grep tidy-inbox 'function login'", "in every version of every file"],
    ["lazarus grep tidy-inbox:yesterday retry --path worktree/src", "in one checkpoint, below one directory"],
  ],
  exits: ["missing", "damaged", "machine"],
  run(context, { args, options }) {
    const point = splitPoint(args.mission);
    using missionContext = openKnownMission(context, context.mission(point.mission));
    const { mission, tree } = missionContext;
    const expression = toExpression(args.text, options.regexp, options["ignore-case"]);
    const scope = createScope(typedPaths(context, missionContext, options.path), tree);
    const refs = point.checkpoint === undefined ? undefined : [findPoint(missionContext, point.checkpoint)];
    const history = readPathHistory(missionContext, { has: scope.has }, refs);
    warnUnreadable(context, mission, history.unreadable);
    const { found, files, skipped } = searchText(missionContext, history, expression);
    context.emit(
      "grep/1",
      {
        mission_id: mission,
        found: found.map(({ version: { path, first, last }, matches }) => ({
          path,
          first_checkpoint_id: first.id,
          last_checkpoint_id: last.id,
          binary: matches.length === 0,
          matches,
        })),
        skipped: skipped.map(({ path, last }) => ({ path, checkpoint_id: last.id })),
        unreadable: history.unreadable.map(({ id }) => id),
      },
      () => found.map((each) => describe(context, each)).join(""),
    );
    const lines = found.reduce((sum, { matches }) => sum + Math.max(1, matches.length), 0);
    context.say(
      `${formatCount(lines, "match", "matches")} in ${formatCount(files, "file version")} of ${formatCount(history.checkpoints.length, "checkpoint")}`,
    );
    if (skipped.length > 0)
      context.warn(`${formatCount(skipped.length, "file version")} larger than 64 MiB not searched`);
    return found.length === 0 ? ERROR_KINDS.missing.exit : 0;
  },
});

function toExpression(text: string, isExpression: boolean, ignoreCase: boolean): RegExp {
  if (text === "") throw usage("grep", "the text to find is empty");
  try {
    return new RegExp(isExpression ? text : RegExp.escape(text), ignoreCase ? "iu" : "u");
  } catch (error) {
    throw usage("grep", messageOf(error));
  }
}

function describe({ paint }: CliContext, { version: { path, last }, matches }: Found): string {
  const head = `${paint.dim(last.id)}:${paint.cyan(escapeControls(path))}`;
  if (matches.length === 0) return `${head}: binary file matches\n`;
  return matches.map(({ line, text }) => `${head}:${line}:${escapeControls(text)}\n`).join("");
}
