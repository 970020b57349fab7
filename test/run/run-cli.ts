// Runs a command line in this process, with its own home.
import { runLine } from "../../src/cli/dispatch.ts";
import { systemMachine } from "../../src/platform/machine.ts";

export async function runCli(home: string, words: readonly string[], env: Record<string, string> = {}) {
  let out = "";
  let err = "";
  const terminal = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    ...{ isInteractive: false, outIsTerminal: false, errIsTerminal: false, columns: 120 },
  };
  const surroundings = { env: { LAZARUS_HOME: home, ...env }, cwd: home, isRoot: false };
  const signal = () => new AbortController().signal;
  const parts = { machine: systemMachine, surroundings, terminal, signal, callerPid: process.pid };
  const exit = await runLine([...words], parts);
  return { exit, out, err, json: () => JSON.parse(out) };
}
