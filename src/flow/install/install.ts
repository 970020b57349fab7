// `flow install` and `flow uninstall` as plans: the AGENTS.md section, the scheduled self-check, the skill. Nothing is
// changed here; service/plan.ts carries a plan out. Files that Lazarus did not write are never changed or removed.
import { isUtf8 } from "node:buffer";
import { lstatSync, readFileSync, readlinkSync, realpathSync, statSync } from "node:fs";
import { join } from "node:path";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import { shellWord } from "../../platform/shell-word.ts";
import {
  type Action,
  leaveAlone,
  planRemove,
  planServiceInstall,
  planServiceUninstall,
  planWrite,
  type RunProgram,
  unchanged,
} from "../../service/plan.ts";
import { FLOW_MARK, type Scheduler, type SelfcheckUnitRequest, selfcheckUnit } from "../../service/unit.ts";
import { staysInside } from "../document/workspace.ts";
import { type SectionChange, withoutSection, withSection } from "./agents-md.ts";
import { skillFile } from "./skill.ts";

export interface InstallRequest extends SelfcheckUnitRequest {
  readonly agentsMd: boolean;
  readonly schedule: Scheduler | undefined;
  /** The folder that holds skills; undefined for no skill. */
  readonly skills: string | undefined;
}

export function planInstall(request: InstallRequest, run: RunProgram): Action[] {
  const actions: Action[] = [];
  if (request.agentsMd) actions.push(planSection(request.root, withSection));
  if (request.skills !== undefined) actions.push(planWrite(skillFile(request.skills), 0o644, FLOW_MARK));
  if (request.schedule !== undefined)
    actions.push(...planServiceInstall(selfcheckUnit(request), request.schedule, run));
  return actions;
}

export function planUninstall(request: InstallRequest, run: RunProgram): Action[] {
  const actions: Action[] = [];
  if (request.agentsMd) actions.push(planSection(request.root, withoutSection));
  if (request.skills !== undefined) actions.push(planRemove(skillFile(request.skills), FLOW_MARK));
  if (request.schedule !== undefined)
    actions.push(...planServiceUninstall(selfcheckUnit(request), request.schedule, run));
  return actions;
}

function planSection(root: string, edit: (text: string) => SectionChange): Action {
  const { path, bytes, mode, linked } = readAgentsMd(root);
  // Any other encoding would not survive being read and written as text.
  if (!isUtf8(bytes)) return leaveAlone(path, "it is not UTF-8 text");
  const change = edit(bytes.toString());
  if (change.kind === "left-alone") return leaveAlone(path, change.reason);
  if (change.kind === "unchanged") return unchanged(path);
  // The target of a symbolic link stays, empty: removing it would leave the link dangling.
  if (change.kind === "removed" && change.text === "" && !linked) return { do: "remove", path };
  return { do: "write", path, text: change.text, mode };
}

/** AGENTS.md is often a link to another agent's file. The target is edited if it is inside the workspace. */
function readAgentsMd(root: string): { path: string; bytes: Buffer; mode: number; linked: boolean } {
  const named = join(root, "AGENTS.md");
  const entry = lstatSync(named, { throwIfNoEntry: false });
  if (entry === undefined) return { path: named, bytes: Buffer.alloc(0), mode: 0o644, linked: false };
  const linked = entry.isSymbolicLink();
  let path: string;
  try {
    path = realpathSync(named);
  } catch (error) {
    if (systemErrorCode(error) !== "ENOENT") throw asLazarusError(error, `reading ${named}`, shellWord(root));
    throw new LazarusError(
      "NOT_FOUND",
      `${named} is a link to ${readlinkSync(named)}, which does not exist`,
      {
        hint: `ls -l ${shellWord(named)}, then create the target or remove the link`,
      },
    );
  }
  if (!staysInside(root, path)) {
    throw new LazarusError("FLOW_OUTSIDE_ROOT", `${named} is a link to ${path}, outside the workspace`, {
      hint: `ls -l ${shellWord(named)}, and edit ${shellWord(path)} by hand`,
    });
  }
  const stat = statSync(path);
  if (!stat.isFile()) {
    throw new LazarusError("FLOW_OUTSIDE_ROOT", `${path} is not a regular file; it was not changed`, {
      hint: `ls -ld ${shellWord(path)}`,
    });
  }
  try {
    return { path, bytes: readFileSync(path), mode: stat.mode & 0o777, linked };
  } catch (error) {
    throw asLazarusError(error, `reading ${path}`, shellWord(path));
  }
}
