// Puts the pieces in place and takes them away again: AGENTS.md section, scheduler, skill. Every change is planned as
// data first, which is what `--dry-run` prints; files that Lazarus did not write are never changed or removed.
// Programs (systemctl, launchctl, crontab) are run by what the caller hands in.
import { readFileSync, realpathSync, rmdirSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { makeDirectory, removeFile, replaceFile } from "../../platform/durable.ts";
import { LazarusError, systemErrorCode } from "../../platform/errors.ts";
import type { Machine } from "../../platform/machine.ts";
import { staysInside } from "../workspace.ts";
import { type SectionChange, withoutSection, withSection } from "./agents-md.ts";
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
} from "./schedule.ts";
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
  | { readonly do: "nothing"; readonly path: string; readonly reason: string };

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
    if (action.do === "write") {
      makeDirectory(machine.disk, dirname(action.path), 0o755);
      replaceFile(machine.disk, action.path, action.text, { mode: action.mode });
    } else if (action.do === "remove") {
      removeFile(machine.disk, action.path);
      removeIfEmpty(dirname(action.path));
    } else if (action.do === "run") {
      const { code, stderr } = run(action.command, action.input);
      if (code !== 0) problems.push(`${action.command.join(" ")} ended with ${code}: ${stderr.trim()}`);
    }
  }
  return problems;
}

function planSection(root: string, edit: (text: string) => SectionChange): Action {
  const { path, text, mode } = readAgentsMd(root);
  const change = edit(text);
  if (change.kind === "left-alone") return { do: "nothing", path, reason: `is left alone: ${change.reason}` };
  if (change.kind === "unchanged") return { do: "nothing", path, reason: "needs no change" };
  if (change.kind === "removed" && change.text === "") return { do: "remove", path };
  return { do: "write", path, text: change.text, mode };
}

/** AGENTS.md is often a link to another agent's file; the file behind it is edited, as long as it is in the workspace. */
function readAgentsMd(root: string): { path: string; text: string; mode: number } {
  const named = join(root, "AGENTS.md");
  let path: string;
  try {
    path = realpathSync(named);
  } catch (error) {
    if (systemErrorCode(error) === "ENOENT") return { path: named, text: "", mode: 0o644 };
    throw error;
  }
  if (!staysInside(root, path)) {
    throw new LazarusError("FLOW_OUTSIDE_ROOT", `${named} is a link to ${path}, outside the workspace`, {
      hint: `ls -l ${named}, and edit ${path} by hand`,
    });
  }
  return { path, text: readFileSync(path, "utf8"), mode: statSync(path).mode & 0o777 };
}

/** Writes a file that is ours: one that carries `mark`, or is not there yet. */
export function writeOwn({ path, text }: UnitFile, mode: number, mark: string = MARK): Action {
  const there = readIfThere(path);
  if (there === text) return { do: "nothing", path, reason: "needs no change" };
  if (there !== undefined && !there.includes(mark)) {
    return { do: "nothing", path, reason: "is left alone: Lazarus did not write it" };
  }
  return { do: "write", path, text, mode };
}

export function removeOwn({ path }: Pick<UnitFile, "path">, mark: string = MARK): Action {
  const there = readIfThere(path);
  if (there === undefined) return { do: "nothing", path, reason: "is not there" };
  if (!there.includes(mark))
    return { do: "nothing", path, reason: "is left alone: Lazarus did not write it" };
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
