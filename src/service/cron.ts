// A service as one crontab line that ends with the unit's name in a comment. Pure: text in, text out.
import { shellWord } from "../platform/shell-word.ts";
import type { ServiceUnit } from "./unit.ts";

/** A daemon is started every minute: if it is already running, the second one exits immediately. */
export function cronLine({ name, command, environment, schedule }: ServiceUnit): string {
  const assignments = environment.map(([variable, value]) => shellWord(`${variable}=${value}`));
  const words = [...(assignments.length === 0 ? [] : ["env", ...assignments]), ...command.map(shellWord)];
  const daemon = schedule === "always";
  const line = `${words.join(" ")}${daemon ? " --quiet" : ""} >/dev/null 2>&1`;
  // cron reads an unescaped % as a line break.
  return `${daemon ? "*" : `*/${schedule.everyMinutes}`} * * * * ${line.replaceAll("%", "\\%")} # ${name}`;
}

/** Adds or replaces the line of the unit `name`; removes it when `line` is undefined. Other lines are kept. */
export function editCrontab(crontab: string, name: string, line: string | undefined): string {
  const lines = crontab.split("\n").filter((each) => !each.endsWith(`# ${name}`));
  while (lines.at(-1) === "") lines.pop();
  if (line !== undefined) lines.push(line);
  return lines.length === 0 ? "" : `${lines.join("\n")}\n`;
}
