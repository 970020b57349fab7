import { basename } from "node:path";
import { BUILT_IN } from "../../../agents/adapters.ts";
import { defineCommand } from "../../command.ts";
import { usage } from "../../parse.ts";

export const command = defineCommand({
  about:
    "Prints functions for a shell that put lazarus in front of every agent CLI on the PATH, so that each claude, codex, … " +
    "that you type is protected. Only interactive shells that read them are affected; `command claude` bypasses them.",
  positionals: [{ name: "shell", summary: "bash, zsh or fish (default: that of $SHELL)", optional: true }],
  options: {},
  examples: [
    ['eval "$(lazarus shell-init bash)"', "in ~/.bashrc"],
    ['eval "$(lazarus shell-init zsh)"', "in ~/.zshrc"],
    ["lazarus shell-init fish | source", "in ~/.config/fish/config.fish"],
  ],
  exits: [],
  run(context, { args }) {
    const shell = args.shell ?? basename(context.surroundings.env.SHELL ?? "bash");
    if (!["bash", "zsh", "fish"].includes(shell))
      throw usage("shell-init", `unknown shell ${JSON.stringify(shell)}; expected bash, zsh or fish`);
    const script = BUILT_IN.map(({ name }) => (shell === "fish" ? fishFunction(name) : posixFunction(name)));
    context.emit("shell-init/1", { shell, script: script.join("") }, () => script.join(""));
    return 0;
  },
});

/** An agent that is not installed gets no function, so that the shell reports it as not found. */
function posixFunction(name: string): string {
  return `if command -v ${name} >/dev/null 2>&1; then ${name}() { command lazarus ${name} "$@"; }; fi\n`;
}

function fishFunction(name: string): string {
  return `if command -q ${name}; function ${name}; command lazarus ${name} $argv; end; end\n`;
}
