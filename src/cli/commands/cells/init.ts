import { initCell } from "../../../cell/init.ts";
import { defineCommand } from "../../command.ts";

export const command = defineCommand({
  about:
    "Makes the cell of a mission: its six directories and seed files. A cell that is partly there is completed; " +
    "nothing that exists is overwritten. With --repo the worktree is filled from a git repository.",
  positionals: [{ name: "mission", summary: "id of the mission: letters, digits, '.', '_', '-'" }],
  options: {
    repo: { type: "text", value: "URL|PATH", summary: "clone this repository into the worktree" },
    branch: { type: "text", value: "NAME", summary: "check out this branch of it" },
    link: { type: "flag", summary: "add a linked worktree of the local repository instead of a clone" },
  },
  examples: [
    ["lazarus init tidy-inbox", "a cell with an empty worktree"],
    ["lazarus init fix-login --repo https://example.org/app.git --branch main", "a cell with a clone"],
    ["lazarus init fix-login --repo ~/src/app --link", "share the history of a local clone"],
  ],
  exits: ["conflict", "machine"],
  async run(context, { args, options }) {
    const mission = context.mission(args.mission);
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
      // Also when the clone failed: the cell is there.
      if (made.length > 0 || repo !== null)
        await context.record({ kind: "init", mission, data: { root: paths.root, made, repo } });
    }
    context.emit("init/1", { mission_id: mission, root: paths.root, made }, () => `${paths.root}\n`);
    if (made.length === 0) context.say(`the cell of ${mission} was complete already`);
    else context.say(`made the cell of ${mission}: ${made.join(" ")}\nnext: lazarus heartbeat ${mission}`);
    return 0;
  },
});
