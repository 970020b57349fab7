// An agent with files, a flow and a run: each step is a tool call of the run that writes a chapter and advances the flow.
// Its effect is a line in a log outside the cell. It continues until the finish file exists.
//
//   node agent.ts <log of effects> <finish file>
import { appendFileSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { jsonSchema, type LanguageModel } from "ai";
import { changeFlow, selfOwner, startFlow } from "../../src/flow/index.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { createExecutor, openCellRunStore, recoverInterrupted } from "../../src/run/index.ts";
import { createScriptedModel } from "../../src/testing/scripted-model.ts";

const [log = "", finish = ""] = process.argv.slice(2);
const cell = process.env.LAZARUS_CELL!;
const worktree = join(cell, "worktree");
const workspace = { machine: systemMachine, root: worktree };
const me = selfOwner(systemMachine.processes);
const FLOW = { workflow: "book" };

const effects = () => (existsSync(log) ? readFileSync(log, "utf8").split("\n") : []);

const write = {
  inputSchema: jsonSchema<object>({ type: "object" }),
  effect: "reconcile" as const,
  async execute(_input: object, { effectId }: { effectId: string }) {
    const [, step] = effectId.split(".");
    writeFileSync(join(worktree, `chapter-${step}.md`), `written for ${effectId}\n`);
    await pause();
    await changeFlow(workspace, FLOW, { complete: [`chapter-${step}`], step: `after-${step}` }, me);
    await pause();
    appendFileSync(log, `${effectId}\n`);
    await pause();
    return "written";
  },
  reconcile: (effectId: string) =>
    effects().includes(effectId)
      ? ({ outcome: "done", output: "written" } as const)
      : ({ outcome: "not-done" } as const),
};

const [working, done] = [
  createScriptedModel([{ tool: "write", input: {} }]),
  createScriptedModel(["The end."]),
];
const model = {
  ...(working as Exclude<LanguageModel, string>),
  doGenerate: (options: never) =>
    ((existsSync(finish) ? done : working) as { doGenerate(options: never): unknown }).doGenerate(options),
} as LanguageModel;

await using store = openCellRunStore(cell);
const executor = createExecutor({
  model,
  store,
  checkpoint: { required: true },
});
const agent = { id: "author", tools: { write }, maxIterations: 100_000 };
if ((await store.list()).length === 0) {
  if (!existsSync(join(worktree, "memory")))
    await startFlow(workspace, { ...FLOW, agent: "author", step: "after-0", idempotency: "book-1" }, { me });
  await executor.run(agent, "Write a book.", { runId: "book" });
} else await recoverInterrupted(executor, { agentFor: () => agent });
const [head] = await store.list();
process.exitCode = head?.status === "completed" ? 0 : 1;

/** Leaves time for a kill between any two of the writes. */
function pause(): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, 3));
}
