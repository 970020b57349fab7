import { readdirSync } from "node:fs";
import { isMissionId } from "../../../cell/mission-id.ts";
import { quietly } from "../../../platform/errors.ts";
import { type AnyCommand, defineCommand, type OptionSpec, type PositionalSpec } from "../../command.ts";
import { type Catalogue, findCommand } from "../../find-command.ts";
import { GLOBAL_OPTIONS } from "../../parse.ts";

/** Takes the catalogue as an argument, because the catalogue itself lists this command. */
export function createCompleteCommand(catalogue: Catalogue): AnyCommand {
  return defineCommand({
    about: "Prints the words that may come next, one per line. The completion scripts call it.",
    positionals: [],
    options: {},
    passthrough: "words…",
    examples: [["lazarus complete -- scan --", "the options of scan"]],
    exits: [],
    async run(context, { rest }) {
      const last = rest.at(-1) ?? "";
      const candidates = await listCandidates(catalogue, rest.slice(0, -1), last, () =>
        listMissions(context.config.config.missions_root),
      );
      const matches = candidates.filter((word) => word.startsWith(last));
      context.emit("complete/1", { candidates: matches }, () => matches.map((word) => `${word}\n`).join(""));
      return 0;
    },
  });
}

async function listCandidates(
  catalogue: Catalogue,
  words: readonly string[],
  last: string,
  missions: () => string[],
): Promise<string[]> {
  const found = findCommand(catalogue, words);
  if (found === undefined) return nextNames(catalogue, words);
  const { command } = await found.entry.load();
  const options: Record<string, OptionSpec> = { ...command.options, ...GLOBAL_OPTIONS };
  const before = words.at(-1)?.replace(/^--/, "") ?? "";
  const valued =
    words.at(-1)?.startsWith("--") && Object.hasOwn(options, before) ? options[before] : undefined;
  if (valued && valued.type !== "flag") return [...(valued.choices ?? [])];
  if (last.startsWith("-")) return Object.keys(options).map((key) => `--${key}`);
  const wantsMission = command.positionals.some((spec: PositionalSpec) => spec.name === "mission");
  return [...(wantsMission ? missions() : []), ...nextNames(catalogue, words)];
}

/** First words of all commands, or the second words that can follow `words`. */
function nextNames(catalogue: Catalogue, words: readonly string[]): string[] {
  const names = Object.entries(catalogue).filter(([, entry]) => !entry.hidden);
  const next = names
    .map(([name]) => name.split(" "))
    .filter((parts) => words.every((word, i) => parts[i] === word) && parts.length > words.length)
    .map((parts) => parts[words.length]!);
  return [...new Set(next)].sort();
}

function listMissions(root: string): string[] {
  return quietly(() => readdirSync(root).filter(isMissionId).sort()) ?? [];
}
