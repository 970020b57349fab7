// Opens what commands about agents act with.
import { type Hands, openHands } from "../pit/context.ts";
import type { CliContext } from "./context.ts";
import { VERSION } from "./version.ts";

export function openCliHands(context: CliContext): Hands {
  return openHands({
    machine: context.machine,
    effective: context.config,
    version: VERSION,
    environment: context.surroundings.env,
    cwd: context.surroundings.cwd,
    say: (line) => context.say(line),
    warn: (line) => context.warn(line),
  });
}
