import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { trustFilePath } from "../../../cell/config.ts";
import { distrustConfig, trustConfig } from "../../../cell/config-trust.ts";
import { LazarusError } from "../../../platform/errors.ts";
import { readJsonFile } from "../../../platform/json-file.ts";
import { shellWord } from "../../../platform/shell-word.ts";
import { defineCommand } from "../../command.ts";
import { escapeControls } from "../../render/paint.ts";
import { refuseAgent } from "./refuse-agent.ts";

export const command = defineCommand({
  about:
    "Accepts a lazarus.json with its current content, so that it is read when you work in its directory. Without this, the " +
    "file is ignored if another user owns or can write it or its directory, or if it is in a cell or in a directory where " +
    "an agent works: a config can name programs to run. Read the file first. After a change it must be accepted again.",
  positionals: [{ name: "file", optional: true, summary: "the file (default ./lazarus.json)" }],
  options: { remove: { type: "flag", summary: "no longer accept it" } },
  examples: [
    ["lazarus config trust", "accept ./lazarus.json"],
    ["lazarus config trust --remove", "no longer accept it"],
  ],
  exits: ["missing", "machine"],
  run(context, { args, options }) {
    const { machine, surroundings } = context;
    refuseAgent(context, "accept a config");
    const file = resolve(surroundings.cwd, args.file ?? "lazarus.json");
    const trustFile = trustFilePath(surroundings);
    if (options.remove) {
      const removed = distrustConfig(machine, trustFile, file);
      context.emit("config-trust/1", { file, trusted: false }, () => "");
      context.say(removed ? `no longer trusted: ${file}` : `${file} was not trusted`);
      return 0;
    }
    if (!existsSync(file)) {
      throw new LazarusError("NOT_FOUND", `there is no file ${file}`, { hint: "lazarus config trust FILE" });
    }
    const real = trustConfig(machine, trustFile, file);
    const reading = readJsonFile(real);
    const keys = reading.ok ? Object.keys(reading.value) : [];
    context.emit("config-trust/1", { file: real, trusted: true, keys }, () => "");
    context.say(
      `trusted ${escapeControls(real)}, which sets: ${escapeControls(keys.join(", ")) || "nothing"}`,
    );
    context.say(`  to undo: lazarus config trust ${escapeControls(shellWord(file))} --remove`);
    return 0;
  },
});
