// The environment that `run` and `set` give an agent: the caller's, a file of variables, and single variables.
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { parseEnv } from "node:util";
import type { Environment } from "../../../pit/record/environment.ts";
import { inheritable } from "../../../pit/start/agent-environment.ts";
import { asLazarusError } from "../../../platform/errors.ts";
import type { CliContext } from "../../context.ts";
import { usage } from "../../parse.ts";

interface EnvironmentOptions {
  readonly env: readonly string[];
  readonly "env-file": string | undefined;
  readonly "no-env": boolean;
}

/** `kept` is the whole environment; null with --no-env, when only `env` is stored. */
export function readAgentEnvironment(
  context: CliContext,
  options: EnvironmentOptions,
): { readonly kept: Environment | null; readonly env: Environment } {
  const { env: callers } = context.surroundings;
  const file = options["env-file"];
  const given = {
    ...(file === undefined ? {} : readEnvFile(context, "run", file)),
    ...readGiven(context, options.env),
  };
  if (!options["no-env"]) return { kept: { ...inheritable(callers), ...given }, env: {} };
  // PATH differs under a service manager, and commands would not be found.
  return { kept: null, env: { ...(callers.PATH === undefined ? {} : { PATH: callers.PATH }), ...given } };
}

/** Lines of NAME=VALUE, as for `node --env-file`. */
export function readEnvFile(context: CliContext, command: string, file: string): Environment {
  const path = resolve(context.surroundings.cwd, file);
  let variables: NodeJS.Dict<string>;
  try {
    variables = parseEnv(readFileSync(path, "utf8"));
  } catch (error) {
    throw asLazarusError(error, `reading ${path}`, path);
  }
  for (const name of Object.keys(variables)) requireName(command, name);
  return variables as Environment;
}

function readGiven({ surroundings: { env } }: CliContext, given: readonly string[]): Environment {
  const values: Record<string, string> = {};
  for (const text of given) {
    const at = text.indexOf("=");
    const name = at < 0 ? text : text.slice(0, at);
    const value = at < 0 ? env[name] : text.slice(at + 1);
    requireName("run", name);
    if (value === undefined) throw usage("run", `--env ${name}: the variable is not set in this environment`);
    values[name] = value;
  }
  return values;
}

function requireName(command: string, name: string): void {
  if (!/^[A-Za-z_]\w*$/.test(name)) throw usage(command, `invalid variable name ${JSON.stringify(name)}`);
}
