// The environment that an agent was started with, kept for its later lives: durable, mode 0600, next to the record and so
// outside the cell, because it contains keys (INV-7). Never in a checkpoint or an export.
import { agentPaths } from "../../cell/agent-paths.ts";
import type { Config } from "../../cell/config.ts";
import { makeDirectory, removeFile } from "../../platform/durable.ts";
import { LazarusError } from "../../platform/errors.ts";
import { isJsonObject, readJsonFile, writeJsonFile } from "../../platform/json-file.ts";
import type { Machine } from "../../platform/machine.ts";

export type Environment = Readonly<Record<string, string>>;

/** More than any kernel accepts. */
const LIMIT_BYTES = 16 * 1024 * 1024;

/** Replaces what is kept; null removes it. The caller holds the mission's lock. */
export function writeEnvironment(
  machine: Machine,
  config: Config,
  mission: string,
  environment: Environment | null,
): void {
  const { directory, environment: path } = agentPaths(config, mission);
  makeDirectory(machine.disk, directory);
  if (environment === null) removeFile(machine.disk, path);
  else writeJsonFile(machine.disk, path, { format: 1, variables: environment });
}

/** Throws when it is missing or damaged: without its keys the agent would fail anyway. */
export function readEnvironment(config: Config, mission: string): Environment {
  const { environment: path } = agentPaths(config, mission);
  const reading = readJsonFile(path, LIMIT_BYTES);
  const variables = reading.ok && reading.value.format === 1 ? reading.value.variables : undefined;
  if (isJsonObject(variables) && Object.values(variables).every((value) => typeof value === "string"))
    return variables as Environment;
  const reason = reading.ok ? "not an environment of this version" : reading.reason;
  throw new LazarusError("AGENT_RECORD_DAMAGED", `cannot read the environment ${path}: ${reason}`, {
    hint: `lazarus set ${mission} --env-file FILE, then: lazarus revive ${mission}`,
  });
}
