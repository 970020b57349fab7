// Help pages, rendered from the commands' data as plain text of at most 80 columns.
import { ERROR_KINDS, type ErrorKind } from "../platform/errors.ts";
import { CATALOGUE, TITLES } from "./catalogue.ts";
import type { AnyCommand, OptionSpec, PositionalSpec } from "./command.ts";
import type { CatalogueEntry } from "./find-command.ts";
import { GLOBAL_OPTIONS } from "./parse.ts";

const WIDTH = 80;

export function overview(version: string): string {
  const lines = [
    `lazarus ${version}: checkpoint, supervise and revive AI agents`,
    "",
    "Usage: lazarus <command> [options]",
  ];
  for (const [group, title] of TITLES) {
    const entries = Object.entries(CATALOGUE).filter(([, entry]) => entry.group === group && !entry.hidden);
    const rare = entries.filter(([, entry]) => entry.rare).map(([name]) => name);
    lines.push("", `${title}:`, ...familyRows(entries.filter(([, entry]) => !entry.rare)));
    if (rare.length > 0) lines.push(row("also", rare.join(", ")));
  }
  lines.push("", "Run lazarus <command> --help for options, examples and exit codes.");
  return `${lines.join("\n")}\n`;
}

/** One line per command; subcommands share the line of their first word, so that the overview fits one screen. */
function familyRows(entries: readonly (readonly [string, CatalogueEntry])[]): string[] {
  const families = new Map<string, string[]>();
  for (const [name] of entries) {
    const [first = "", second] = name.split(" ");
    if (second !== undefined) families.set(first, [...(families.get(first) ?? []), second]);
  }
  const shown = new Set<string>();
  return entries.flatMap(([name, entry]) => {
    const [first = "", second] = name.split(" ");
    const members = families.get(first);
    if (second === undefined || members === undefined || members.length === 1)
      return row(name, entry.summary);
    if (shown.has(first)) return [];
    shown.add(first);
    return row(`${first} …`, members.join(", "));
  });
}

export function commandHelp(name: string, command: AnyCommand): string {
  const lines = [
    `lazarus ${name}: ${CATALOGUE[name]!.summary}`,
    "",
    `Usage: ${usageLine(name, command)}`,
    "",
  ];
  lines.push(...wrap(command.about), "");
  if (command.positionals.length > 0) {
    lines.push(
      "Arguments:",
      ...command.positionals.map((spec: PositionalSpec) => row(spec.name, spec.summary)),
      "",
    );
  }
  lines.push("Options:");
  const options: Record<string, OptionSpec> = { ...command.options, ...GLOBAL_OPTIONS };
  for (const [key, spec] of Object.entries(options)) lines.push(row(optionName(key, spec), spec.summary));
  lines.push("", "Examples:");
  for (const [line, purpose] of command.examples) lines.push(`  # ${purpose}`, `  ${line}`);
  lines.push("", "Exit codes:", row("0", "success"));
  const kinds = [...new Set<ErrorKind>(["internal", "usage", ...command.exits, "config"])];
  kinds.sort((a, b) => ERROR_KINDS[a].exit - ERROR_KINDS[b].exit);
  for (const kind of kinds) lines.push(row(String(ERROR_KINDS[kind].exit), ERROR_KINDS[kind].meaning));
  return `${lines.join("\n")}\n`;
}

export function usageLine(name: string, command: AnyCommand): string {
  const parts = [`lazarus ${name}`];
  for (const spec of command.positionals as readonly PositionalSpec[]) {
    const text = spec.variadic ? `${spec.name}…` : spec.name;
    parts.push(spec.optional || spec.here ? `[${text}]` : `<${text}>`);
  }
  if (Object.keys(command.options).length > 0) parts.push("[options]");
  if (command.passthrough) parts.push(`-- ${command.passthrough}`);
  return parts.join(" ");
}

function optionName(key: string, spec: OptionSpec): string {
  const value =
    spec.type === "flag" ? "" : ` ${spec.value ?? (spec.choices ? spec.choices.join("|") : "VALUE")}`;
  return `${spec.short ? `-${spec.short}, ` : ""}--${key}${value}`;
}

const NAME_WIDTH = 22;

function row(name: string, summary: string): string {
  const indent = " ".repeat(NAME_WIDTH + 4);
  const [first = "", ...more] = wrap(summary, WIDTH - indent.length);
  const head = name.length > NAME_WIDTH ? `  ${name}\n${indent}` : `  ${name.padEnd(NAME_WIDTH)}  `;
  return [`${head}${first}`, ...more.map((line) => indent + line)].join("\n");
}

export function wrap(text: string, width: number = WIDTH): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of text.split(/\s+/)) {
    if (line !== "" && line.length + 1 + word.length > width) {
      lines.push(line);
      line = word;
    } else line = line === "" ? word : `${line} ${word}`;
  }
  return line === "" ? lines : [...lines, line];
}
