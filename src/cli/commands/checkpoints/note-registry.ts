// Notes in the registry what a command did to a vault. The registry is a cache: when it cannot be written the work still
// stands, and a warning says how to fill it again.
import { openRegistry, type Registry } from "../../../registry/registry.ts";
import type { CliContext } from "../../context.ts";

export function noteRegistry(context: CliContext, work: (registry: Registry) => void): void {
  try {
    using registry = openRegistry(context.machine, context.config.config.registry_file);
    work(registry);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    context.warn(`the registry was not written: ${why}; try: lazarus registry rebuild`);
  }
}
