import { planHookInstall } from "../../../agents/install.ts";
import { ERROR_KINDS } from "../../../platform/errors.ts";
import { planWrite, wasLeftAlone } from "../../../service/plan.ts";
import { FLOW_MARK } from "../../../service/unit.ts";
import { defineCommand } from "../../command.ts";
import { carryOutOrShow } from "../flows/install-options.ts";
import { hookTarget, lazarusSkill, SKILL, TARGET_OPTIONS } from "./install-target.ts";
import { refuseAgent } from "./refuse-agent.ts";

export const command = defineCommand({
  about:
    "Adds Lazarus hooks to the config of an agent's CLI, for sessions that Lazarus does not start (lazarus run needs " +
    "no installation), or adds the skill that teaches agents when to use Lazarus. Running it again updates them; the rest of " +
    "the file stays. A file that cannot be parsed is not changed. lazarus uninstall restores the file byte for byte.",
  positionals: [
    { name: "what", summary: "claude, codex, gemini, qwen, opencode, pi, copilot, cline or skill" },
  ],
  options: TARGET_OPTIONS,
  examples: [
    ["lazarus install claude --dry-run", "show what would change in ~/.claude/settings.json"],
    ["lazarus install skill", "teach the agents of this directory"],
  ],
  exits: ["degraded", "machine", "unsupported"],
  run(context, { args, options }) {
    refuseAgent(context, "install hooks");
    const dryRun = options["dry-run"];
    const shown = { schema: "install/1", undo: `lazarus uninstall ${args.what}` };
    if (args.what === SKILL) {
      const action = planWrite(lazarusSkill(context, options["skills-dir"]), 0o644, FLOW_MARK);
      const code = carryOutOrShow(context, [action], dryRun, shown);
      return code === 0 && wasLeftAlone([action]) ? ERROR_KINDS.degraded.exit : code;
    }
    const target = hookTarget(context, args.what);
    const code = carryOutOrShow(context, planHookInstall(target), dryRun, shown);
    if (target.adapter.name === "codex" && !dryRun)
      context.say("codex runs new hooks only after you trust them: start codex once and accept them");
    return code;
  },
});
