// What `install` and `uninstall` work on: the hooks of an agent's CLI, or the skill.
import { homedir } from "node:os";
import { join, resolve } from "node:path";
import type { Adapter } from "../../../agents/adapter.ts";
import { BUILT_IN, findAdapter } from "../../../agents/adapters.ts";
import { type InstallTarget, installedHooks } from "../../../agents/install.ts";
import { skillFile } from "../../../flow/install/skill.ts";
import { findProgramProblem } from "../../../pit/start/find-program.ts";
import type { UnitFile } from "../../../service/unit.ts";
import type { OptionSpec } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";

export const SKILL = "skill";

export const TARGET_OPTIONS = {
  "skills-dir": {
    type: "text",
    value: "DIR",
    summary: "for skill: the folder that holds skills (default .agents/skills)",
  },
  "dry-run": { type: "flag", summary: "show the difference, change nothing" },
} as const satisfies Record<string, OptionSpec>;

/** Agents whose hooks can be installed. */
function installable(context: CliContext): Adapter[] {
  return BUILT_IN.filter((adapter) => adapter.hooks.install(placeOf(context), ["x"]).length > 0);
}

export function hookTarget(context: CliContext, name: string): InstallTarget {
  const adapter = findAdapter(name);
  if (adapter !== undefined) return targetOf(context, adapter);
  const names = [...installable(context).map((each) => each.name), SKILL].join(", ");
  throw usage("install", `unknown agent ${JSON.stringify(name)}; expected one of: ${names}`);
}

export function targetOf(context: CliContext, adapter: Adapter): InstallTarget {
  return {
    adapter,
    place: placeOf(context),
    command: [...lazarusProgram(context), "hook", adapter.name, "--installed"],
    originals: join(context.config.config.run_dir, "installed"),
  };
}

/** Whether `run` cannot pass the hooks of this agent, which has some, and they are not installed either. */
export function lacksHooks(context: CliContext, adapter: Adapter): boolean {
  const target = targetOf(context, adapter);
  const { perRun, install } = adapter.hooks;
  const passed = perRun?.(target.command, context.config.config.run_dir, target.place.env);
  if (passed !== undefined && passed.args.length + Object.keys(passed.env).length > 0) return false;
  return install(target.place, target.command).length > 0 && installedHooks(target).length === 0;
}

export function lazarusSkill(context: CliContext, directory: string | undefined): UnitFile {
  return skillFile(resolve(context.surroundings.cwd, directory ?? join(".agents", "skills")), "lazarus");
}

function placeOf({ surroundings: { cwd, env } }: CliContext) {
  return { cwd, home: env.HOME || homedir(), env };
}

/** By its name where it is on PATH, so that an update does not break the hooks. */
function lazarusProgram({ surroundings: { env } }: CliContext): readonly string[] {
  if (findProgramProblem(["lazarus"], env.PATH, "/") === undefined) return ["lazarus"];
  return [process.execPath, ...(process.argv[1] === undefined ? [] : [resolve(process.argv[1])])];
}
