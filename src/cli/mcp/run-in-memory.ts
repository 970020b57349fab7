// Runs a command line of Lazarus in this process and captures its output, for tools that are commands under another name.
import { asLazarusError } from "../../platform/errors.ts";
import { type CliContext, createContext } from "../context.ts";
import { type Catalogue, findCommand } from "../find-command.ts";
import { parseLine } from "../parse.ts";

export interface Captured {
  readonly exit: number;
  readonly stdout: Buffer;
  /** Warnings and messages, one per line. */
  readonly stderr: string;
  /** Set when the command failed: a sentence, and what to do. */
  readonly failure?: { readonly message: string; readonly hint: string | undefined };
}

/** `words`: the command and its arguments. Never throws. */
export async function runInMemory(
  catalogue: Catalogue,
  context: CliContext,
  words: readonly string[],
): Promise<Captured> {
  const stdout: Uint8Array[] = [];
  let stderr = "";
  const terminal = {
    out: (text: string | Uint8Array) => {
      stdout.push(Buffer.from(text));
    },
    err: (text: string | Uint8Array) => {
      stderr += Buffer.from(text).toString("utf8");
    },
    isInteractive: false,
    outIsTerminal: false,
    errIsTerminal: false,
    columns: 80,
  };
  const { machine, surroundings, callerPid, signal } = context;
  try {
    const found = findCommand(catalogue, words);
    if (found === undefined) throw new Error(`no command ${words[0]}`);
    const { command } = await found.entry.load();
    const { globals, input } = parseLine(found.name, command, found.rest);
    const parts = { machine, surroundings, callerPid, terminal, signal: () => signal };
    const inner = createContext(parts, { ...globals, config: globals.config ?? context.globals.config });
    const exit = (await command.run(inner, input)) ?? 0;
    return { exit, stdout: Buffer.concat(stdout), stderr };
  } catch (error) {
    const { exitCode, message, hint } = asLazarusError(error, "lazarus");
    return { exit: exitCode, stdout: Buffer.concat(stdout), stderr, failure: { message, hint } };
  }
}
