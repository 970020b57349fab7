import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { replaceFile } from "../../platform/durable.ts";
import { formatJson } from "../../platform/json-file.ts";
import { defineCommand } from "../command.ts";
import type { CliContext } from "../context.ts";
import { runLine } from "../run-line.ts";

const MISSION = "try-out";
const STALE_AFTER_SECONDS = 2;

export const command = defineCommand({
  about:
    "Makes a cell in a temporary home, beats its heart, scans, lets it go stale and shows each result. It runs the " +
    "same command lines that you would type. Nothing is left behind unless you ask for it.",
  positionals: [],
  options: { keep: { type: "flag", summary: "keep the temporary home and say where it is" } },
  examples: [["lazarus demo", "about five seconds"]],
  exits: ["machine"],
  async run(context, { options }) {
    const home = mkdtempSync(join(tmpdir(), "lazarus-demo-"));
    try {
      replaceFile(
        context.machine.disk,
        join(home, "config.json"),
        formatJson({ heartbeat_interval_seconds: 1, stale_after_seconds: STALE_AFTER_SECONDS }),
      );
      await tour(context, home);
    } finally {
      if (!options.keep) rmSync(home, { recursive: true, force: true });
    }
    context.terminal.out(
      options.keep
        ? `\nThe temporary home is ${home}; go on with: export LAZARUS_HOME=${home}\n`
        : "\nNothing is left behind. Your own first cell: lazarus init my-mission\n",
    );
    return 0;
  },
});

async function tour(context: CliContext, home: string): Promise<void> {
  const { terminal, paint } = context;
  const step = async (title: string, ...words: string[]) => {
    terminal.out(`\n${paint.bold(title)}\n${paint.cyan(`$ lazarus ${words.join(" ")}`)}\n`);
    await runLine(words, {
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
  terminal.out("Lazarus try-out, in a temporary home. It takes about five seconds.\n");
  await step("1. A mission lives in a cell. Make one.", "init", MISSION);
  await step("2. An agent says that it is alive.", "heartbeat", MISSION, "--status", "working");
  await step("3. A look at all cells.", "scan");
  terminal.out(`\n   … the agent falls silent for ${STALE_AFTER_SECONDS + 1} seconds …\n`);
  await context.machine.clock.sleep((STALE_AFTER_SECONDS + 1) * 1000, context.signal);
  await step("4. Silence past its limit is noticed.", "scan");
  await step("5. The agent is back.", "heartbeat", MISSION, "--status", "back at work");
  await step("6. And the log tells what happened.", "events");
}
