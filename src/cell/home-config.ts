// The configuration of a home directory, for programs that use Lazarus as a library.
import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { type EffectiveConfig, loadConfig } from "./config.ts";

/**
 * The configuration of a home: all paths are below `home`, and settings come from its `config.json`, if it has one.
 * Reads neither the environment nor the user's home directory.
 *
 * @example const { config } = homeConfig("/srv/lazarus");
 */
export function homeConfig(home: string): EffectiveConfig {
  const directory = resolve(home);
  const file = join(directory, "config.json");
  const surroundings = { env: { LAZARUS_HOME: directory }, cwd: directory, isRoot: false };
  return loadConfig(surroundings, existsSync(file) ? file : undefined);
}
