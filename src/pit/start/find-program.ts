// Finds the program of a command line as the agent's own process would: through PATH, or relative to its working
// directory. A command that cannot be started is an error before a life begins, not a crash.
import { accessSync, constants, statSync } from "node:fs";
import { resolve } from "node:path";
import { LazarusError } from "../../platform/errors.ts";

/** What execvp and shells use when PATH is not set. */
const DEFAULT_PATH = "/usr/local/bin:/bin:/usr/bin";

/** Why the program cannot be executed; undefined when it can. */
export function findProgramProblem(
  [program = ""]: readonly string[],
  path: string | undefined,
  workingDirectory: string,
): string | undefined {
  const name = JSON.stringify(program);
  if (program.includes("/")) {
    const file = resolve(workingDirectory, program);
    if (isExecutable(file)) return undefined;
    return statSync(file, { throwIfNoEntry: false }) === undefined
      ? `the command ${name} does not exist`
      : `the command ${name} is not executable`;
  }
  const directories = (path ?? DEFAULT_PATH).split(":").map((each) => resolve(workingDirectory, each));
  if (program !== "" && directories.some((directory) => isExecutable(resolve(directory, program))))
    return undefined;
  return `the command ${name} is not on PATH`;
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

/** `what` is being started. */
export function commandNotFound(
  what: string,
  problem: string,
  details?: Readonly<Record<string, unknown>>,
): LazarusError {
  return new LazarusError("COMMAND_NOT_FOUND", `cannot start ${what}: ${problem}`, {
    hint: "check the name and PATH, or give the whole path of the program",
    details,
  });
}
