import { statSync } from "node:fs";
import { join, resolve } from "node:path";
import { DEFAULT_LABEL } from "../../../integrations/gitea/settings.ts";
import { proposalTemplate, TEMPLATE_MARK } from "../../../integrations/gitea/template.ts";
import { LazarusError } from "../../../platform/errors.ts";
import { planWrite } from "../../../service/plan.ts";
import { defineCommand } from "../../command.ts";
import { carryOutOrShow } from "../flows/install-options.ts";

export const command = defineCommand({
  about:
    "Writes the issue form for mission proposals into a repository: into .gitea, which Gitea and Forgejo both read, or " +
    "into .forgejo. Commit it to the default branch. With pit.gitea in the config and a webhook for issue labels, " +
    "Lazarus creates the cell of a proposal when it gets the approval label.",
  positionals: [{ name: "directory", summary: "checkout of the repository" }],
  options: {
    forgejo: { type: "flag", summary: "write into .forgejo instead of .gitea" },
    label: {
      type: "text",
      value: "NAME",
      summary: `label that approves a proposal (default ${DEFAULT_LABEL})`,
    },
    "dry-run": { type: "flag", summary: "print what would be written, do nothing" },
  },
  examples: [
    ["lazarus gitea install-template .", "in the current repository"],
    ["lazarus gitea install-template ../missions --dry-run", "show what would be written"],
  ],
  exits: ["missing", "machine"],
  run(context, { args, options }) {
    const repository = resolve(context.surroundings.cwd, args.directory);
    if (!statSync(repository, { throwIfNoEntry: false })?.isDirectory()) {
      throw new LazarusError("NOT_FOUND", `${repository} is not a directory`, {
        hint: "clone the repository first, or give another directory",
      });
    }
    const home = options.forgejo ? ".forgejo" : ".gitea";
    const path = join(repository, home, "ISSUE_TEMPLATE", "mission-proposal.yaml");
    const text = proposalTemplate(options.label ?? DEFAULT_LABEL);
    return carryOutOrShow(context, [planWrite({ path, text }, 0o644, TEMPLATE_MARK)], options["dry-run"], {
      schema: "gitea-install-template/1",
      undo: `rm ${path}`,
    });
  },
});
