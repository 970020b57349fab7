import { LazarusError } from "../../../platform/errors.ts";
import { type Fork, forkRun } from "../../../run/operations/fork.ts";
import type { OptionSpec } from "../../command.ts";
import type { CliContext } from "../../context.ts";
import { defineRunsCommand } from "./define.ts";
import { findRun, STORE_OPTIONS } from "./places.ts";
import { type StoreChoice, sameStore } from "./same-store.ts";

/** Options of commands that create a run from another one. */
export const FORK_OPTIONS = {
  ...STORE_OPTIONS,
  with: { type: "text", value: "AGENT", summary: "id of the agent that continues it (default: the same)" },
  id: { type: "text", value: "ID", summary: "id of the new run (default: a new one)" },
} as const satisfies Record<string, OptionSpec>;

export const command = defineRunsCommand({
  about:
    "Creates a run that shares the first steps of another one and continues on its own. The original is not touched, and " +
    "nothing is copied. Effects that the original had after that step are listed, because the fork may repeat them under " +
    "its own ids. The fork continues when its host resumes it.",
  positionals: [{ name: "run", summary: "id of the run, or a prefix of it" }],
  options: {
    ...FORK_OPTIONS,
    at: { type: "number", value: "STEP", summary: "last shared step; 0 shares only the input" },
  },
  examples: [
    ["lazarus runs fork 20261115-235301-x7k2p9 --at 3", "try again from step 3"],
    ["lazarus runs fork 20261115-235301-x7k2p9 --at 3 --with mailer-2", "with another agent"],
  ],
  exits: ["missing", "damaged", "conflict", "machine"],
  async run(context, { args, options }) {
    if (options.at === undefined) {
      throw new LazarusError("USAGE", "missing --at STEP", { hint: `lazarus runs fork ${args.run} --at 3` });
    }
    const { store, runId } = await findRun(context, options, args.run);
    await using opened = store;
    const { id, with: agentId } = options;
    return reportFork(context, options, await forkRun(opened.log, runId, options.at, { runId: id, agentId }));
  },
});

/** Prints a new run, and what the original did after the shared steps. */
export function reportFork(context: CliContext, choice: StoreChoice, { head, happened }: Fork): number {
  const { id, forkOf, forkStep } = head;
  const effects = happened.map(({ id: effect, tool, state }) => ({ id: effect, tool, state }));
  context.emit(
    "run-fork/1",
    { run_id: id, fork_of: forkOf, step: forkStep, happened: effects },
    () => `${id}\n`,
  );
  for (const effect of effects) {
    context.say(
      `${forkOf} already ran ${effect.id} (${effect.tool}, ${effect.state}); the new run may repeat it`,
    );
  }
  context.say(`forked ${forkOf} at step ${forkStep}; next: lazarus runs show ${id}${sameStore(choice)}`);
  return 0;
}
