// `lazarus claude …`: the user's command line with `lazarus` in front. All arguments belong to the agent.
import { spawn } from "node:child_process";
import { constants } from "node:os";
import { allAdapters } from "../../../agents/adapters.ts";
import { commandNotFound, findProgramProblem } from "../../../pit/start/find-program.ts";
import { asLazarusError, type LazarusError } from "../../../platform/errors.ts";
import { type AnyCommand, defineCommand } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { parseLine } from "../../parse.ts";
import { command } from "./run.ts";

const run: AnyCommand = command;

export function createAgentCommand(name: string): AnyCommand {
  return defineCommand({
    about:
      `Runs ${name} in the current directory with all arguments that follow, and returns its exit code. The directory ` +
      "becomes the worktree of a mission of the same name (lazarus run --here --revive yes): files and conversation are " +
      "saved together, and after a crash the conversation continues where it stopped. Commands without a conversation, " +
      `such as ${name} --version, are only passed on.`,
    positionals: [{ name: "word", summary: `arguments of ${name}`, optional: true, variadic: true }],
    options: {},
    raw: true,
    examples: [
      [`lazarus ${name}`, "a session in this directory"],
      [`lazarus shell-init`, `protect every ${name} that you start`],
    ],
    exits: ["command", "conflict", "machine", "busy", "damaged", "unsupported"],
    async run(context, { rest }) {
      const adapter = allAdapters().find((each) => each.name === name)!;
      const words = [name, ...rest];
      // An agent that starts another one works for its own mission.
      const isInsideLife = Boolean(context.surroundings.env.LAZARUS_EPOCH);
      if (isInsideLife || adapter.parse(rest).isUtility) return await passOn(context, words);
      const line = ["--here", "--revive", "yes", "--replace", "--", ...words];
      try {
        return (await run.run(context, parseLine("run", run, line).input)) ?? 0;
      } catch (error) {
        throw withAdvice(error, name);
      }
    },
  });
}

/** A command without a conversation. */
async function passOn({ surroundings }: CliContext, words: readonly string[]): Promise<number> {
  const [program = "", ...args] = words;
  const problem = findProgramProblem(words, surroundings.env.PATH, surroundings.cwd);
  if (problem !== undefined) throw commandNotFound(program, problem);
  const child = spawn(program, args, { stdio: "inherit", cwd: surroundings.cwd, env: surroundings.env });
  return await new Promise((resolve, reject) => {
    child.once("error", (error) => reject(asLazarusError(error, `starting ${program}`)));
    child.once("exit", (code, signal) => resolve(code ?? 128 + (constants.signals[signal!] ?? 0)));
  });
}

function withAdvice(error: unknown, name: string): LazarusError {
  const known = asLazarusError(error, `lazarus ${name}`);
  const mission = known.details?.mission;
  if (known.code === "AGENT_RUNNING")
    return known.with({
      hint:
        typeof mission === "string" ? `lazarus attach ${mission}` : "lazarus status, then: lazarus attach",
    });
  if (known.code === "WORKTREE_REFUSED")
    return known.with({
      hint: `${known.hint === undefined ? "" : `${known.hint}; `}without Lazarus: command ${name}`,
    });
  return known;
}
