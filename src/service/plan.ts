// Installing and removing services and other files, as a list of actions: `--dry-run` prints it, `carryOut` executes
// it. Installing twice changes nothing; files without our mark are never changed or removed. Programs (systemctl,
// launchctl, crontab) are run by the injected `RunProgram`.
import { readFileSync, rmdirSync } from "node:fs";
import { basename, dirname } from "node:path";
import { makeDirectory, removeFile, replaceFile } from "../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../platform/errors.ts";
import type { Machine } from "../platform/machine.ts";
import { shellWord } from "../platform/shell-word.ts";
import { cronLine, editCrontab } from "./cron.ts";
import { launchdPlist } from "./launchd.ts";
import { systemdFiles, systemdTarget } from "./systemd.ts";
import type { Scheduler, ServiceUnit, UnitFile } from "./unit.ts";

/** One step of a plan. `run` steps come after the files they need. */
export type Action =
  /** `before`: the text that is replaced, where a dry run shows only the difference. */
  | {
      readonly do: "write";
      readonly path: string;
      readonly text: string;
      readonly mode: number;
      readonly before?: string;
      /** A file of Lazarus itself, which is not shown. */
      readonly isInternal?: true;
    }
  | { readonly do: "remove"; readonly path: string }
  | { readonly do: "run"; readonly command: readonly string[]; readonly input?: string }
  /** `leftAlone`: a change was requested but refused, because Lazarus did not write what is there. */
  | { readonly do: "nothing"; readonly path: string; readonly reason: string; readonly leftAlone?: true };

/** Runs a program to completion. A failure is a result, not an exception. */
export type RunProgram = (
  command: readonly string[],
  input?: string,
) => { code: number; stdout: string; stderr: string };

const UNIT_MODE = 0o644;
/** The directories of the skills belong to Lazarus and are removed when their last file is. */
export const SKILL_DIRECTORIES = { flow: "restart-safe-flow", lazarus: "lazarus" } as const;

export function planServiceInstall(unit: ServiceUnit, scheduler: Scheduler, run: RunProgram): Action[] {
  if (scheduler === "cron") {
    const crontab = readCrontab(run, unit.previewCommand);
    const edited = editCrontab(crontab, unit.name, cronLine(unit));
    if (edited === crontab) return [unchanged("crontab")];
    return [{ do: "run", command: ["crontab", "-"], input: edited }];
  }
  const files = scheduler === "systemd" ? systemdFiles(unit) : [launchdPlist(unit)];
  const writes = files.map((file) => planWrite(file, UNIT_MODE, unit.mark));
  if (wasLeftAlone(writes)) return writes.filter(isLeftAlone);
  const changed = writes.some((action) => action.do === "write");
  if (scheduler === "launchd") return changed ? [...writes, launchctl("load", files[0]!)] : writes;
  const target = systemdTarget(unit);
  if (!changed) return [...writes, systemctl(unit, "enable", "--now", target)];
  const start =
    unit.schedule === "always"
      ? [systemctl(unit, "enable", target), systemctl(unit, "restart", target)]
      : [systemctl(unit, "enable", "--now", target)];
  return [...writes, systemctl(unit, "daemon-reload"), ...start];
}

export function planServiceUninstall(unit: ServiceUnit, scheduler: Scheduler, run: RunProgram): Action[] {
  if (scheduler === "cron") {
    const crontab = readCrontab(run, unit.previewCommand);
    const edited = editCrontab(crontab, unit.name, undefined);
    if (edited === crontab)
      return [{ do: "nothing", path: "crontab", reason: "has no line written by Lazarus" }];
    return [{ do: "run", command: ["crontab", "-"], input: edited }];
  }
  const files = scheduler === "systemd" ? systemdFiles(unit) : [launchdPlist(unit)];
  const removals = files.map((file) => planRemove(file, unit.mark));
  if (!removals.some((action) => action.do === "remove")) return removals;
  if (scheduler === "launchd") return [launchctl("unload", files[0]!), ...removals];
  return [
    systemctl(unit, "disable", "--now", systemdTarget(unit)),
    ...removals,
    systemctl(unit, "daemon-reload"),
  ];
}

/** Writes a file that carries `mark` or does not exist yet. */
export function planWrite({ path, text }: UnitFile, mode: number, mark: string): Action {
  const content = readIfExists(path);
  if (content === text) return unchanged(path);
  if (content !== undefined && !content.includes(mark)) return leaveAlone(path, NOT_OURS);
  return { do: "write", path, text, mode };
}

/** Removes a file that carries `mark`. */
export function planRemove({ path }: Pick<UnitFile, "path">, mark: string): Action {
  const content = readIfExists(path);
  if (content === undefined) return { do: "nothing", path, reason: "does not exist" };
  if (!content.includes(mark)) return leaveAlone(path, NOT_OURS);
  return { do: "remove", path };
}

export function unchanged(path: string): Action {
  return { do: "nothing", path, reason: "is up to date" };
}

export function leaveAlone(path: string, reason: string): Action {
  return { do: "nothing", path, reason: `was not changed: ${reason}`, leftAlone: true };
}

/** Executes the actions in order. Returns a message per program that failed; the files are written regardless. */
export function carryOut(machine: Machine, actions: readonly Action[], run: RunProgram): string[] {
  const problems: string[] = [];
  for (const action of actions) {
    if (action.do === "write" || action.do === "remove") {
      changeFile(machine, action);
    } else if (action.do === "run") {
      const { code, stderr } = run(action.command, action.input);
      if (code !== 0) problems.push(`${action.command.join(" ")} exited with ${code}: ${stderr.trim()}`);
    }
  }
  return problems;
}

/** Whether a requested change was refused. */
export function wasLeftAlone(actions: readonly Action[]): boolean {
  return actions.some(isLeftAlone);
}

function isLeftAlone(action: Action): boolean {
  return action.do === "nothing" && action.leftAlone === true;
}

const NOT_OURS = "Lazarus did not write it";

function changeFile(machine: Machine, action: Extract<Action, { do: "write" | "remove" }>): void {
  const directory = dirname(action.path);
  try {
    if (action.do === "write") {
      makeDirectory(machine.disk, directory, 0o755);
      replaceFile(machine.disk, action.path, action.text, { mode: action.mode });
    } else {
      removeFile(machine.disk, action.path);
      if (basename(action.path) === "SKILL.md") removeIfEmpty(directory);
    }
  } catch (error) {
    throw asLazarusError(error, `changing ${action.path}`, shellWord(directory));
  }
}

function readIfExists(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT" || systemErrorCode(error) === "ENOTDIR") return undefined;
    throw error;
  }
}

/** `crontab -l` fails when there is no crontab yet. After any other failure, writing would lose the existing lines. */
function readCrontab(run: RunProgram, previewCommand: string): string {
  const { code, stdout, stderr } = run(["crontab", "-l"]);
  if (code === 0) return stdout;
  if (/no crontab/i.test(stderr)) return "";
  throw new LazarusError(
    "PLATFORM_UNSUPPORTED",
    `the crontab cannot be read: ${stderr.trim() || `exit code ${code}`}`,
    { hint: `${previewCommand}, to print the line; add or remove it by hand` },
  );
}

function systemctl({ scope }: ServiceUnit, ...args: string[]): Action {
  return { do: "run", command: ["systemctl", ...(scope === "user" ? ["--user"] : []), ...args] };
}

function launchctl(verb: "load" | "unload", { path }: UnitFile): Action {
  return { do: "run", command: ["launchctl", verb, "-w", path] };
}

function removeIfEmpty(directory: string): void {
  try {
    rmdirSync(directory);
  } catch {}
}
