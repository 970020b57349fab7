import { readdirSync } from "node:fs";
import { isMissionId } from "../../../cell/mission-id.ts";
import { CATALOGUE } from "../../catalogue.ts";
import { defineCommand, type OptionSpec, type PositionalSpec } from "../../command.ts";
import { findCommand } from "../../find-command.ts";
import { GLOBAL_OPTIONS } from "../../parse.ts";

export const command = defineCommand({
  about: "Prints the words that may follow, one a line. The completion scripts call it.",
  positionals: [],
  options: {},
  passthrough: "words…",
  examples: [["lazarus complete -- scan --", "the options of scan"]],
  exits: [],
  async run(context, { rest }) {
    const words = rest.slice(0, -1);
    const last = rest.at(-1) ?? "";
    const candidates = await candidatesFor(words, last, () => missions(context.config.config.missions_root));
    const fitting = candidates.filter((word) => word.startsWith(last));
    context.emit("complete/1", { candidates: fitting }, () => fitting.map((word) => `${word}\n`).join(""));
    return 0;
  },
});

async function candidatesFor(
  words: readonly string[],
  last: string,
  listMissions: () => string[],
): Promise<string[]> {
  const found = findCommand(words);
  if (found === undefined) return nextNames(words);
  const { command } = await found.entry.load();
  const options: Record<string, OptionSpec> = { ...command.options, ...GLOBAL_OPTIONS };
  const before = words.at(-1)?.replace(/^--/, "") ?? "";
  const valued =
    words.at(-1)?.startsWith("--") && Object.hasOwn(options, before) ? options[before] : undefined;
  if (valued && valued.type !== "flag") return [...(valued.choices ?? [])];
  if (last.startsWith("-")) return Object.keys(options).map((key) => `--${key}`);
  const wantsMission = command.positionals.some((spec: PositionalSpec) => spec.name === "mission");
  return [...(wantsMission ? listMissions() : []), ...nextNames(words)];
}

/** First words of all commands, or the second words that can follow `words`. */
function nextNames(words: readonly string[]): string[] {
  const names = Object.entries(CATALOGUE).filter(([, entry]) => !entry.hidden);
  const next = names
    .map(([name]) => name.split(" "))
    .filter((parts) => words.every((word, i) => parts[i] === word) && parts.length > words.length)
    .map((parts) => parts[words.length]!);
  return [...new Set(next)].sort();
}

function missions(root: string): string[] {
  try {
    return readdirSync(root).filter(isMissionId).sort();
  } catch {
    return [];
  }
}
