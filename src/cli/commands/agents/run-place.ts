// Where `run` starts an agent: in its cell, with a clone in it, or in an existing directory, which becomes the mission's
// worktree.
import { existsSync, statSync } from "node:fs";
import { resolve } from "node:path";
import { initCell } from "../../../cell/init.ts";
import type { MissionId } from "../../../cell/mission-id.ts";
import { findUnprotected } from "../../../pit/unprotected.ts";
import { LazarusError } from "../../../platform/errors.ts";
import { shellWord } from "../../../platform/shell-word.ts";
import { missionOf, protectDirectory, resolveDirectory } from "../../../snapshot/operations/protect.ts";
import type { CliContext } from "../../context.ts";
import { openCliMission } from "../../open-mission.ts";
import { usage } from "../../parse.ts";

export interface PlaceOptions {
  readonly here: boolean;
  readonly in: string | undefined;
  readonly cwd: string | undefined;
  readonly repo: string | undefined;
  readonly branch: string | undefined;
  readonly link: boolean;
}

export interface RunPlace {
  readonly mission: MissionId;
  /** The directory that becomes the worktree, with links resolved. */
  readonly directory: string | undefined;
}

/** Which mission and directory are meant. Writes nothing. */
export function chooseRunPlace(
  context: CliContext,
  name: string | undefined,
  options: PlaceOptions,
): RunPlace {
  const { cwd } = context.surroundings;
  if (options.here && options.in !== undefined) throw usage("run", "--here and --in cannot be combined");
  const given = options.here ? cwd : options.in === undefined ? undefined : resolve(cwd, options.in);
  if (given === undefined) {
    if (name === undefined)
      throw usage("run", "missing argument <mission>; in this directory: lazarus run --here -- COMMAND");
    return { mission: context.mission(name), directory: undefined };
  }
  if (options.repo !== undefined)
    throw usage("run", "--repo fills a worktree in the cell; omit --here and --in");
  const directory = resolveDirectory(given);
  return {
    mission: name === undefined ? missionOf(context.config.config, directory) : context.mission(name),
    directory,
  };
}

/** Sets up the worktree. Returns the agent's working directory, or null for the worktree. */
export async function prepareRunPlace(
  context: CliContext,
  { mission, directory }: RunPlace,
  options: PlaceOptions,
): Promise<string | null> {
  if (directory !== undefined) await protectAs(context, mission, directory);
  else await cloneIntoWorktree(context, mission, options);
  if (options.cwd === undefined) return null;
  const cwd = requireDirectory(resolve(context.surroundings.cwd, options.cwd));
  if (findUnprotected(context.config.config, mission, cwd) !== null)
    context.warn(
      `${cwd} is not protected: no checkpoint of ${mission} holds its files; to protect it: lazarus run ${mission} --in ${shellWord(cwd)} -- COMMAND`,
    );
  return cwd;
}

/** Makes a directory the worktree of a mission, and says so unless it was already. */
export async function protectAs(
  context: CliContext,
  mission: MissionId,
  directory: string,
): Promise<"same" | "new" | "moved"> {
  using opened = openCliMission(context, mission);
  const { change, record } = await protectDirectory(opened, directory, context.surroundings.env.HOME);
  if (change !== "same")
    context.say(
      `${record.path} is now the worktree of ${mission}; nothing is written into it until a restore`,
    );
  return change;
}

async function cloneIntoWorktree(
  context: CliContext,
  mission: MissionId,
  { repo, branch, link }: PlaceOptions,
): Promise<void> {
  if (repo === undefined) return;
  const { paths, made } = initCell(context.machine, context.config.config, mission);
  if (!made.includes("worktree/") && existsSync(`${paths.worktree}/.git`)) return;
  const { fillWorktree } = await import("../../../cell/worktree.ts");
  context.say(`${link ? "linking" : "cloning"} ${repo} into ${paths.worktree} …`);
  fillWorktree(context.machine.disk, paths.worktree, { repo, branch, link }, context.surroundings.cwd);
  await context.record({ kind: "init", mission, data: { root: paths.root, made, repo } });
}

function requireDirectory(directory: string): string {
  if (statSync(directory, { throwIfNoEntry: false })?.isDirectory()) return directory;
  throw new LazarusError("NOT_FOUND", `there is no directory ${directory}`, {
    hint: `mkdir -p ${directory}`,
  });
}
