// Opens the pit context for the commands about agents.
import { openPitContext, type PitContext } from "../../../pit/context.ts";
import { VERSION } from "../../../platform/version.ts";
import type { CliContext } from "../../context.ts";

export function openCliPitContext(context: CliContext): PitContext {
  return openPitContext({
    machine: context.machine,
    effective: context.config,
    version: VERSION,
    environment: context.surroundings.env,
    cwd: context.surroundings.cwd,
    log: (line) => context.say(line),
    warn: (line) => context.warn(line),
  });
}
