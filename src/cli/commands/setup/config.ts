import { defineCommand } from "../../command.ts";
import { escapeControls, type Painter } from "../../render/paint.ts";
import { checkConfig, listSettings, type SettingRow } from "../../settings.ts";

export const command = defineCommand({
  about:
    "Prints every setting with its value, where the value comes from (default, LAZARUS_HOME or a config file), its " +
    "default and its meaning. The config file is the first of --config, LAZARUS_CONFIG, ./lazarus.json, " +
    "~/.config/lazarus/config.json and /etc/lazarus/config.json that exists. ./lazarus.json is ignored, with a warning, if " +
    "another user or an agent can write it; see: lazarus config trust --help. A wrong value is reported with its key.",
  positionals: [],
  options: {},
  examples: [
    ["lazarus config", "print all settings"],
    ["lazarus config --json | jq '.settings[] | select(.origin != \"default\")'", "only those that are set"],
    ["LAZARUS_HOME=/tmp/try lazarus config", "see what a separate home changes"],
  ],
  exits: [],
  run(context) {
    const { config, origins, file, ignored = null } = context.config;
    const warnings = checkConfig(context.config);
    const settings = listSettings(context.config);
    const document = { file: file ?? null, ignored, values: config, origins, warnings, settings };
    context.emit("config/1", document, () =>
      settings.map((row) => describeSetting(row, context.paint)).join(""),
    );
    context.say(file === undefined ? "no config file found; these are the defaults" : `config file: ${file}`);
    for (const warning of warnings) context.warn(warning);
    return 0;
  },
});

function describeSetting({ key, value, origin, default: standard, description }: SettingRow, paint: Painter) {
  const isDefault = origin === "default";
  const source = isDefault ? "default" : `from ${origin}; default: ${format(standard)}`;
  return `${paint.bold(escapeControls(key))} = ${escapeControls(format(value))}  ${paint.dim(`(${escapeControls(source)})`)}\n    ${description}\n`;
}

function format(value: unknown): string {
  if (value === null) return "not set";
  return typeof value === "string" ? value : JSON.stringify(value);
}
