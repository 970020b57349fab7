// What a checkpoint depends on besides the cell: version, configuration, and the environment that git sees. A command lets the pit
// act for it only if both have the same. On the hot path: no heavy imports.
import { join } from "node:path";
import type { EffectiveConfig } from "../cell/config.ts";
import { sha256Hex } from "../platform/sha256.ts";
import { VERSION } from "../platform/version.ts";

/** Where the addresses of a running pit are written. */
export function addressPath(runDir: string): string {
  return join(runDir, "http.json");
}

/** The token that allows everything, for commands of the same user. */
export function tokenPath(runDir: string): string {
  return join(runDir, "token");
}

/** Equal for two processes that would take the same checkpoint. */
export function callerKey(
  { config, document }: Pick<EffectiveConfig, "config" | "document">,
  { HOME, XDG_CONFIG_HOME }: Readonly<Record<string, string | undefined>>,
): string {
  return sha256Hex(JSON.stringify([VERSION, config, document, HOME ?? null, XDG_CONFIG_HOME ?? null]));
}
