import { resolve } from "node:path";
import { initCell } from "../../../cell/init.ts";
import { defineCommand } from "../../command.ts";
import { usage } from "../../parse.ts";
import { refuseInsideLife } from "../agents/refuse-inside-life.ts";

export const command = defineCommand({
  about:
    "Creates the cell of a mission: its six directories and initial files. An incomplete cell is completed; existing " +
    "files are never overwritten. With --repo, a git repository is cloned into the worktree; with --worktree, an existing " +
    "directory becomes the worktree.",
  positionals: [{ name: "mission", summary: "id of the mission: letters, digits, '.', '_', '-'" }],
  options: {
    repo: { type: "text", value: "URL|PATH", summary: "clone this repository into the worktree" },
    branch: { type: "text", value: "NAME", summary: "branch to check out" },
    worktree: { type: "text", value: "DIR", summary: "use this directory as the worktree, in place" },
    link: { type: "flag", summary: "add a git worktree of a local repository instead" },
  },
  examples: [
    ["lazarus init tidy-inbox", "with an empty worktree"],
    ["lazarus init fix-login --repo https://example.org/app.git --branch main", "with a clone"],
    ["lazarus init fix-login --repo ~/src/app --link", "with a git worktree of a local clone"],
    ["lazarus init fix-login --worktree ~/src/app", "with a directory in place"],
  ],
  exits: ["missing", "conflict", "machine", "busy"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
    if (options.worktree !== undefined) {
      if (options.repo !== undefined) throw usage("init", "--repo and --worktree cannot be combined");
      refuseInsideLife(context, "init --worktree");
      const { protectAs } = await import("../agents/run-place.ts");
      const { resolveDirectory } = await import("../../../snapshot/operations/protect.ts");
      const directory = resolveDirectory(resolve(context.surroundings.cwd, options.worktree));
      await protectAs(context, mission, directory);
    }
    const { paths, made } = initCell(context.machine, context.config.config, mission);
    let repo: string | null = null;
    try {
      if (options.repo !== undefined) {
        const { fillWorktree } = await import("../../../cell/worktree.ts");
        context.say(`${options.link ? "linking" : "cloning"} ${options.repo} into ${paths.worktree} …`);
        const source = { repo: options.repo, branch: options.branch, link: options.link };
        fillWorktree(context.machine.disk, paths.worktree, source, context.surroundings.cwd);
        repo = options.repo;
      }
    } finally {
      // Recorded even if the clone failed, because the cell exists.
      if (made.length > 0 || repo !== null)
        await context.record({ kind: "init", mission, data: { root: paths.root, made, repo } });
    }
    context.emit("init/1", { mission_id: mission, root: paths.root, made }, () => `${paths.root}\n`);
    if (options.worktree !== undefined) context.say(`next: lazarus run ${mission} -- COMMAND`);
    else if (made.length === 0) context.say(`the cell of ${mission} already exists`);
    else
      context.say(
        `created the cell of ${mission}: ${made.join(" ")}\nnext: lazarus run ${mission} -- COMMAND`,
      );
    return 0;
  },
});
