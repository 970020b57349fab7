import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { replaceFile } from "../../platform/durable.ts";
import { asLazarusError, ERROR_KINDS } from "../../platform/errors.ts";
import { formatJson } from "../../platform/json-file.ts";
import { defineCommand } from "../command.ts";
import type { CliContext } from "../context.ts";
import { runLine } from "../run-line.ts";
import type { Terminal } from "../terminal.ts";

const MISSION = "try-out";
const STALE_AFTER_SECONDS = 2;

export const command = defineCommand({
  about:
    "Makes a cell in a temporary home, beats its heart, scans, lets it go stale and shows each result. It runs the " +
    "same command lines that you would type. Nothing is left behind unless you ask for it.",
  positionals: [],
  options: { keep: { type: "flag", summary: "keep the temporary home and say where it is" } },
  examples: [["lazarus demo", "about five seconds"]],
  exits: ["machine", "interrupted"],
  async run(context, { options }) {
    const { globals, machine, terminal } = context;
    const home = makeHome();
    // With --json the one document has stdout to itself.
    const stage: Terminal = globals.json ? { ...terminal, out: terminal.err } : terminal;
    let exit: number;
    try {
      const settings = { heartbeat_interval_seconds: 1, stale_after_seconds: STALE_AFTER_SECONDS };
      replaceFile(machine.disk, join(home, "config.json"), formatJson(settings));
      exit = await tour(context, stage, home);
    } finally {
      if (!options.keep) rmSync(home, { recursive: true, force: true });
    }
    context.emit("demo/1", { exit, home: options.keep ? home : null }, () =>
      farewell(exit, options.keep, home),
    );
    return exit;
  },
});

function makeHome(): string {
  try {
    return mkdtempSync(join(tmpdir(), "lazarus-demo-"));
  } catch (error) {
    throw asLazarusError(error, `making a temporary home in ${tmpdir()}`, tmpdir());
  }
}

function farewell(exit: number, keep: boolean, home: string): string {
  if (keep) return `\nThe temporary home is ${home}; go on with: export LAZARUS_HOME=${home}\n`;
  return exit === 0 ? "\nNothing is left behind. Your own first cell: lazarus init my-mission\n" : "";
}

/** Runs the command lines in turn; ends with the exit code of the first that fails. */
async function tour(context: CliContext, terminal: Terminal, home: string): Promise<number> {
  const { paint } = context;
  const step = async (title: string, ...words: string[]): Promise<number> => {
    terminal.out(`\n${paint.bold(title)}\n${paint.cyan(`$ lazarus ${words.join(" ")}`)}\n`);
    return runLine(words, {
      machine: context.machine,
      callerPid: context.callerPid,
      terminal,
      signal: () => context.signal,
      surroundings: {
        ...context.surroundings,
        cwd: home,
        env: { ...context.surroundings.env, LAZARUS_HOME: home, LAZARUS_CONFIG: undefined },
      },
    });
  };
  const silence = async (): Promise<number> => {
    terminal.out(`\n   … the agent falls silent for ${STALE_AFTER_SECONDS + 1} seconds …\n`);
    await context.machine.clock.sleep((STALE_AFTER_SECONDS + 1) * 1000, context.signal);
    return context.signal.aborted ? ERROR_KINDS.interrupted.exit : 0;
  };
  terminal.out("Lazarus try-out, in a temporary home. It takes about five seconds.\n");
  for (const act of [
    () => step("1. A mission lives in a cell. Make one.", "init", MISSION),
    () => step("2. An agent says that it is alive.", "heartbeat", MISSION, "--status", "working"),
    () => step("3. A look at all cells.", "scan"),
    silence,
    () => step("4. Silence past its limit is noticed.", "scan"),
    () => step("5. The agent is back.", "heartbeat", MISSION, "--status", "back-at-work"),
    () => step("6. And the log tells what happened.", "events"),
  ]) {
    const exit = await act();
    if (exit !== 0) return exit;
  }
  return 0;
}
