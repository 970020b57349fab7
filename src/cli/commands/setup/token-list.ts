import { tokenPath } from "../../../http/caller.ts";
import { type ListedToken, listTokens } from "../../../http/tokens.ts";
import { defineCommand } from "../../command.ts";
import { formatTime } from "../../render/format.ts";
import { type Column, renderTable } from "../../render/table.ts";

const COLUMNS: readonly Column<ListedToken>[] = [
  { head: "name", cell: ({ name }) => name, shrinks: true },
  { head: "scope", cell: ({ scope }) => scope },
  { head: "mission", cell: ({ mission }) => mission ?? "all", shrinks: true },
  { head: "created", cell: ({ created_ms: ms }) => formatTime(ms) },
  { head: "last used", cell: ({ last_used_ms: ms }) => (ms === null ? "never" : formatTime(ms)) },
  {
    head: "expires",
    cell: ({ expires_ms: ms, expired }) => (ms === null ? "never" : expired ? "expired" : formatTime(ms)),
  },
];

export const command = defineCommand({
  about:
    "Lists the tokens of the HTTP API that `lazarus token create` made, with their scope and when they were last used (to " +
    "the minute). The tokens themselves are not stored. The token in run_dir/token, which allows everything, is not listed.",
  positionals: [],
  options: {},
  examples: [["lazarus token list", "all tokens"]],
  exits: ["machine"],
  run(context) {
    const { run_dir: runDir } = context.config.config;
    const tokens = listTokens(context.machine, runDir);
    context.emit("tokens/1", { tokens, full_token_file: tokenPath(runDir) }, () =>
      tokens.length === 0 ? "" : renderTable(COLUMNS, tokens, context.terminal.columns),
    );
    if (tokens.length === 0) context.say("no tokens yet; create one with: lazarus token create NAME");
    context.say(`the token in ${tokenPath(runDir)} allows everything`);
    return 0;
  },
});
