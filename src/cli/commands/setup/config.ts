import type { ConfigKey } from "../../../cell/config.ts";
import { defineCommand } from "../../command.ts";
import { renderTable } from "../../render/table.ts";

export const command = defineCommand({
  about:
    "Shows every setting with its effective value and what decided it: a default, LAZARUS_HOME, or a config file. The " +
    "file is the first of --config, LAZARUS_CONFIG, ./lazarus.json, the user's XDG config, /etc/lazarus/config.json.",
  positionals: [],
  options: {},
  examples: [
    ["lazarus config", "what is in force here"],
    ["LAZARUS_HOME=/tmp/try lazarus config", "a home of its own for a try-out"],
  ],
  exits: [],
  run(context) {
    const { config, origins, file, warnings } = context.config;
    const values = Object.entries(config) as [ConfigKey, unknown][];
    context.emit("config/1", { file: file ?? null, values: config, origins, warnings }, () =>
      renderTable<[ConfigKey, unknown]>(
        [
          { head: "KEY", cell: ([key]) => key },
          {
            head: "VALUE",
            cell: ([, value]) => (Array.isArray(value) ? value.join(" ") : String(value)),
            shrinks: true,
          },
          { head: "FROM", cell: ([key]) => origins[key], shrinks: true },
        ],
        values,
        context.terminal.outIsTerminal ? context.terminal.columns : Number.POSITIVE_INFINITY,
      ),
    );
    context.say(file === undefined ? "no config file was found; these are defaults" : `config file: ${file}`);
    for (const warning of warnings) context.warn(warning);
    return 0;
  },
});
