import { planHookUninstall } from "../../../agents/install.ts";
import { planRemove } from "../../../service/plan.ts";
import { FLOW_MARK } from "../../../service/unit.ts";
import { defineCommand } from "../../command.ts";
import { carryOutOrShow } from "../flows/install-options.ts";
import { hookTarget, lazarusSkill, SKILL, TARGET_OPTIONS } from "./install-target.ts";
import { refuseAgent } from "./refuse-agent.ts";

export const command = defineCommand({
  about:
    "Removes what lazarus install added. A config file is restored byte for byte; if it was changed since, only the Lazarus " +
    "hooks are removed.",
  positionals: [
    { name: "what", summary: "claude, codex, gemini, qwen, opencode, pi, copilot, cline or skill" },
  ],
  options: TARGET_OPTIONS,
  examples: [["lazarus uninstall claude", "remove the hooks from ~/.claude/settings.json"]],
  exits: ["degraded", "machine", "unsupported"],
  run(context, { args, options }) {
    refuseAgent(context, "remove hooks");
    const dryRun = options["dry-run"];
    const shown = { schema: "install/1", undo: `lazarus install ${args.what}` };
    if (args.what === SKILL) {
      const action = planRemove(lazarusSkill(context, options["skills-dir"]), FLOW_MARK);
      return carryOutOrShow(context, [action], dryRun, shown);
    }
    const { actions, changed } = planHookUninstall(hookTarget(context, args.what));
    const code = carryOutOrShow(context, actions, dryRun, shown);
    for (const path of changed)
      context.say(`${path} was changed since the install; only the Lazarus hooks are removed`);
    return code;
  },
});
