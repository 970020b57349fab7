import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { ERROR_KINDS, LazarusError } from "../../../platform/errors.ts";
import { defineCommand } from "../../command.ts";
import { renderTable } from "../../render/table.ts";

/** Agents that are created while this is set do not recover runs. */
const CHECKING = Symbol.for("lazarus.runs.checking");

interface Row {
  readonly agent: string;
  readonly runId: string;
  readonly status: string;
  readonly step: number;
  readonly verdict: string;
  readonly problems: readonly string[];
}

interface Checkable {
  readonly id?: string;
  check(): Promise<readonly Omit<Row, "agent">[]>;
}

export const command = defineCommand({
  about:
    "Replays open runs against the current version of their agents, which a module exports. Use it before a deploy. No model " +
    "or tool is called, and nothing is written. A run that differs can continue, and the differences are listed; one that is " +
    "stuck cannot, and the exit code is then 3.",
  positionals: [{ name: "module", summary: "a JavaScript or TypeScript file that exports agents" }],
  options: {},
  examples: [["lazarus runs check ./agent.ts", "check the runs in progress against this version"]],
  exits: ["alert", "missing", "damaged", "machine"],
  async run(context, { args }) {
    const path = resolve(context.surroundings.cwd, args.module);
    if (!existsSync(path)) {
      throw new LazarusError("NOT_FOUND", `there is no module at ${path}`, { hint: `ls -l ${path}` });
    }
    const rows: Row[] = [];
    const agents = await agentsOf(path);
    for (const [name, agent] of agents) {
      for (const run of await agent.check()) rows.push({ agent: agent.id ?? name, ...run });
    }
    context.emit(
      "runs-check/1",
      { agents: agents.map(([name, { id }]) => id ?? name), runs: rows.map((row) => ({ ...row })) },
      () =>
        rows.length === 0
          ? "no open runs\n"
          : renderTable<Row>(
              [
                { head: "RUN", cell: ({ runId }) => runId },
                { head: "AGENT", cell: ({ agent }) => agent, shrinks: true },
                { head: "STATUS", cell: ({ status }) => status },
                { head: "STEP", cell: ({ step }) => String(step), alignRight: true },
                { head: "VERDICT", cell: ({ verdict }) => verdict },
              ],
              rows,
              context.terminal.columns,
            ),
    );
    for (const { runId, problems } of rows)
      for (const problem of problems) context.say(`${runId}: ${problem}`);
    return rows.some(({ verdict }) => verdict === "stuck") ? ERROR_KINDS.alert.exit : 0;
  },
});

async function agentsOf(path: string): Promise<[name: string, agent: Checkable][]> {
  const state = globalThis as { [CHECKING]?: boolean };
  state[CHECKING] = true;
  try {
    const exports = (await import(pathToFileURL(path).href)) as Record<string, unknown>;
    const found = Object.entries(exports).filter((entry): entry is [string, Checkable] =>
      isDurableAgent(entry[1]),
    );
    if (found.length > 0) return found;
  } finally {
    delete state[CHECKING];
  }
  throw new LazarusError("USAGE", `${path} exports no durable agent`, {
    hint: "export const mailer = durable(new ToolLoopAgent({ … }), { store })",
  });
}

/** True for agents of another copy of the library as well. Other exports may have a `check` too, such as zod schemas. */
function isDurableAgent(value: unknown): boolean {
  const agent = value as { version?: unknown; check?: unknown; recover?: unknown } | null | undefined;
  return (
    agent?.version === "agent-v1" && typeof agent.check === "function" && typeof agent.recover === "function"
  );
}
