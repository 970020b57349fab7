// Puts the pieces in place and takes them away again: AGENTS.md section, scheduler, skill. Every change is planned as
// data first, which is what `--dry-run` prints; files that Lazarus did not write are never changed or removed.
// Programs (systemctl, launchctl, crontab) are run by what the caller hands in.

import { isUtf8 } from "node:buffer";
import { lstatSync, readFileSync, readlinkSync, realpathSync, rmdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeDirectory, removeFile, replaceFile } from "../../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import { shellWord } from "../../platform/shell-word.ts";
import {
  cronLine,
  editCrontab,
  launchdPlist,
  MARK,
  type ScheduleRequest,
  type Scheduler,
  scheduleName,
  systemdUnits,
  type UnitFile,
} from "../../service/schedule.ts";
import { staysInside } from "../document/workspace.ts";
import { type SectionChange, withoutSection, withSection } from "./agents-md.ts";
import { skillFile } from "./skill.ts";

export interface InstallRequest extends ScheduleRequest {
  readonly agentsMd: boolean;
  readonly schedule: Scheduler | undefined;
  /** The folder that holds skills; undefined for no skill. */
  readonly skills: string | undefined;
}

/** One step of the plan. `run` steps follow the files they need. */
export type Action =
  | { readonly do: "write"; readonly path: string; readonly text: string; readonly mode: number }
  | { readonly do: "remove"; readonly path: string }
  | { readonly do: "run"; readonly command: readonly string[]; readonly input?: string }
  /** `leftAlone`: there was something to do, and it was not done, since Lazarus did not write what is there. */
  | { readonly do: "nothing"; readonly path: string; readonly reason: string; readonly leftAlone?: true };

/** Runs a program to its end; how it went is data. */
export type RunProgram = (
  command: readonly string[],
  input?: string,
) => { code: number; stdout: string; stderr: string };

export function planInstall(request: InstallRequest, run: RunProgram): Action[] {
  const actions: Action[] = [];
  if (request.agentsMd) actions.push(planSection(request.root, withSection));
  if (request.skills !== undefined) actions.push(writeOwn(skillFile(request.skills), 0o644));
  if (request.schedule === "systemd") {
    const name = scheduleName(request.root);
    actions.push(...systemdUnits(request).map((unit) => writeOwn(unit, 0o644)));
    actions.push({ do: "run", command: systemctl(request, "daemon-reload") });
    actions.push({ do: "run", command: systemctl(request, "enable", "--now", `${name}.timer`) });
  } else if (request.schedule === "launchd") {
    const plist = launchdPlist(request);
    actions.push(writeOwn(plist, 0o644), { do: "run", command: ["launchctl", "load", "-w", plist.path] });
  } else if (request.schedule === "cron") {
    const line = cronLine(request);
    actions.push({
      do: "run",
      command: ["crontab", "-"],
      input: editCrontab(readCrontab(run), scheduleName(request.root), line),
    });
  }
  return actions;
}

export function planUninstall(request: InstallRequest, run: RunProgram): Action[] {
  const actions: Action[] = [];
  if (request.agentsMd) actions.push(planSection(request.root, withoutSection));
  if (request.skills !== undefined) actions.push(removeOwn(skillFile(request.skills)));
  if (request.schedule === "systemd") {
    const name = scheduleName(request.root);
    actions.push({ do: "run", command: systemctl(request, "disable", "--now", `${name}.timer`) });
    actions.push(...systemdUnits(request).map((unit) => removeOwn(unit)));
    actions.push({ do: "run", command: systemctl(request, "daemon-reload") });
  } else if (request.schedule === "launchd") {
    const plist = launchdPlist(request);
    actions.push({ do: "run", command: ["launchctl", "unload", "-w", plist.path] }, removeOwn(plist));
  } else if (request.schedule === "cron") {
    const crontab = readCrontab(run);
    const without = editCrontab(crontab, scheduleName(request.root), undefined);
    if (without === crontab) actions.push({ do: "nothing", path: "crontab", reason: "has no line of ours" });
    else actions.push({ do: "run", command: ["crontab", "-"], input: without });
  }
  return actions;
}

/** Does what the plan says, in order. Programs that fail come back as words: the files are in place all the same. */
export function carryOut(machine: Machine, actions: readonly Action[], run: RunProgram): string[] {
  const problems: string[] = [];
  for (const action of actions) {
    if (action.do === "write" || action.do === "remove") {
      changeFile(machine, action);
    } else if (action.do === "run") {
      const { code, stderr } = run(action.command, action.input);
      if (code !== 0) problems.push(`${action.command.join(" ")} ended with ${code}: ${stderr.trim()}`);
    }
  }
  return problems;
}

/** Whether something was asked for that the plan does not do. */
export function wasLeftAlone(actions: readonly Action[]): boolean {
  return actions.some((action) => action.do === "nothing" && action.leftAlone === true);
}

function changeFile(machine: Machine, action: Extract<Action, { path: string }>): void {
  const directory = dirname(action.path);
  try {
    if (action.do === "write") {
      makeDirectory(machine.disk, directory, 0o755);
      replaceFile(machine.disk, action.path, action.text, { mode: action.mode });
    } else {
      removeFile(machine.disk, action.path);
      removeIfEmpty(directory);
    }
  } catch (error) {
    throw asLazarusError(error, `changing ${action.path}`, shellWord(directory));
  }
}

function planSection(root: string, edit: (text: string) => SectionChange): Action {
  const { path, bytes, mode, linked } = readAgentsMd(root);
  // Anything else would come back changed from being read as text.
  if (!isUtf8(bytes)) return leftAlone(path, "it is not UTF-8 text");
  const change = edit(bytes.toString());
  if (change.kind === "left-alone") return leftAlone(path, change.reason);
  if (change.kind === "unchanged") return { do: "nothing", path, reason: "needs no change" };
  // Behind a link stays an empty file: without it the link would lead nowhere.
  if (change.kind === "removed" && change.text === "" && !linked) return { do: "remove", path };
  return { do: "write", path, text: change.text, mode };
}

function leftAlone(path: string, reason: string): Action {
  return { do: "nothing", path, reason: `is left alone: ${reason}`, leftAlone: true };
}

/** AGENTS.md is often a link to another agent's file; the file behind it is edited, as long as it is in the workspace. */
function readAgentsMd(root: string): { path: string; bytes: Buffer; mode: number; linked: boolean } {
  const named = join(root, "AGENTS.md");
  const there = lstatSync(named, { throwIfNoEntry: false });
  if (there === undefined) return { path: named, bytes: Buffer.alloc(0), mode: 0o644, linked: false };
  const linked = there.isSymbolicLink();
  let path: string;
  try {
    path = realpathSync(named);
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw asLazarusError(error, `reading ${named}`, shellWord(root));
    throw new LazarusError("NOT_FOUND", `${named} is a link to ${readlinkSync(named)}, which is not there`, {
      hint: `ls -l ${shellWord(named)}, then make the file that it leads to, or remove the link`,
    });
  }
  if (!staysInside(root, path)) {
    throw new LazarusError("FLOW_OUTSIDE_ROOT", `${named} is a link to ${path}, outside the workspace`, {
      hint: `ls -l ${shellWord(named)}, and edit ${shellWord(path)} by hand`,
    });
  }
  const stat = statSync(path);
  if (!stat.isFile()) {
    throw new LazarusError("FLOW_OUTSIDE_ROOT", `${path} is not a regular file; it is left alone`, {
      hint: `ls -ld ${shellWord(path)}`,
    });
  }
  try {
    return { path, bytes: readFileSync(path), mode: stat.mode & 0o777, linked };
  } catch (error) {
    throw asLazarusError(error, `reading ${path}`, shellWord(path));
  }
}

const NOT_OURS = "Lazarus did not write it";

/** Writes a file that is ours: one that carries `mark`, or is not there yet. */
export function writeOwn({ path, text }: UnitFile, mode: number, mark: string = MARK): Action {
  const there = readIfThere(path);
  if (there === text) return { do: "nothing", path, reason: "needs no change" };
  if (there !== undefined && !there.includes(mark)) {
    return leftAlone(path, NOT_OURS);
  }
  return { do: "write", path, text, mode };
}

export function removeOwn({ path }: Pick<UnitFile, "path">, mark: string = MARK): Action {
  const there = readIfThere(path);
  if (there === undefined) return { do: "nothing", path, reason: "is not there" };
  if (!there.includes(mark)) return leftAlone(path, NOT_OURS);
  return { do: "remove", path };
}

function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT" || systemErrorCode(error) === "ENOTDIR") return undefined;
    throw error;
  }
}

/** `crontab -l` fails when there is none yet. Any other failure must not end in an empty crontab being written. */
export function readCrontab(
  run: RunProgram,
  byHand = "lazarus flow install --schedule cron --dry-run",
): string {
  const { code, stdout, stderr } = run(["crontab", "-l"]);
  if (code === 0) return stdout;
  if (/no crontab/i.test(stderr)) return "";
  throw new LazarusError(
    "PLATFORM_UNSUPPORTED",
    `the crontab cannot be read: ${stderr.trim() || `exit code ${code}`}`,
    {
      hint: `${byHand} prints the line, to be added by hand`,
    },
  );
}

function systemctl({ isRoot }: InstallRequest, ...args: string[]): string[] {
  return isRoot ? ["systemctl", ...args] : ["systemctl", "--user", ...args];
}

function removeIfEmpty(directory: string): void {
  if (!directory.endsWith("restart-safe-flow")) return;
  try {
    rmdirSync(directory);
  } catch {}
}
