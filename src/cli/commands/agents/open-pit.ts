// Opens the pit context for the commands about agents.
import { resolve } from "node:path";
import { loadConfig } from "../../../cell/config.ts";
import { openPitContext, type PitContext } from "../../../pit/context.ts";
import { VERSION } from "../../../platform/version.ts";
import type { CliContext } from "../../context.ts";

/** `isDaemon`: it runs for long, and keeps its memory small. */
export function openCliPitContext(context: CliContext, { isDaemon = false } = {}): PitContext {
  return openPitContext({
    machine: context.machine,
    effective: context.config,
    readConfig: () => loadConfig(context.surroundings, context.globals.config),
    version: VERSION,
    environment: context.surroundings.env,
    cwd: context.surroundings.cwd,
    program: [process.execPath, ...(process.argv[1] === undefined ? [] : [resolve(process.argv[1])])],
    usesProcesses: isDaemon,
    log: (line) => context.say(line),
    warn: (line) => context.warn(line),
  });
}
