import { defineCommand } from "../../command.ts";
import { usage } from "../../parse.ts";

export const command = defineCommand({
  about:
    "Prints a completion script for a shell. It completes commands, options, option values and mission ids.",
  positionals: [{ name: "shell", summary: "bash, zsh or fish" }],
  options: {},
  examples: [
    ['eval "$(lazarus completion bash)"', "in ~/.bashrc"],
    ['eval "$(lazarus completion zsh)"', "in ~/.zshrc, after compinit"],
    ["lazarus completion fish > ~/.config/fish/completions/lazarus.fish", "install it for fish"],
  ],
  exits: [],
  run(context, { args }) {
    const script = Object.hasOwn(SCRIPTS, args.shell) ? SCRIPTS[args.shell] : undefined;
    if (script === undefined)
      throw usage("completion", `unknown shell ${JSON.stringify(args.shell)}; expected bash, zsh or fish`);
    context.emit("completion/1", { shell: args.shell, script }, () => script);
    return 0;
  },
});

/** The scripts call `lazarus complete`, so they never go out of date. */
const SCRIPTS: Readonly<Record<string, string>> = {
  bash: `_lazarus() {
  local IFS=$'\\n'
  COMPREPLY=( $(compgen -W "$(lazarus complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)" -- "\${COMP_WORDS[COMP_CWORD]}") )
}
complete -o default -F _lazarus lazarus
`,
  zsh: `_lazarus() {
  local -a found
  found=("\${(@f)$(lazarus complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}")
  compadd -a found
}
compdef _lazarus lazarus
`,
  fish: `complete -c lazarus -f -a '(lazarus complete -- (commandline -opc)[2..] (commandline -ct) 2>/dev/null)'
`,
};
