// Flows: start-up time of commands between an agent's steps, the cost of a library update compared with one fsync, and
// 10,000 files against a Python script that does the same work.
import { closeSync, fsyncSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { changeFlow, formatIso, selfOwner, startFlow, withCheckpointHash } from "../src/flow/index.ts";
import { replaceFile } from "../src/platform/durable.ts";
import { systemMachine } from "../src/platform/machine.ts";
import { type Bench, type Contest, runProgram } from "./harness.ts";

const LAUNCHER = join(import.meta.dirname, "..", "bin", "lazarus.js");
const PYTHON_FLOWS = join(import.meta.dirname, "flow_files.py");
const FLOWS = 10_000;
const START_ROUNDS = 200;
const LIBRARY_ROUNDS = 400;
const SCAN_ROUNDS = 15;
const STALE_MINUTES = 10;
const DAY_MS = 86_400_000;

export const bench: Bench = {
  about: `\`flow update\` and \`flow resume\` run between an agent's steps. They are compared with the start of Node itself and
include the durable write, hash and lock. The library's update is compared with one fsync: writing, syncing and closing a
new file of the same size, the minimum for durability (the rename needs a second one). \`flow list\` and
\`flow selfcheck\` of ${FLOWS.toLocaleString("en")} files, with every schema and hash checked, are compared with
\`bench/flow_files.py\`. Both sides include process start.`,
  async prepare(directory) {
    const env = { HOME: directory, LAZARUS_HOME: join(directory, "home"), PATH: process.env.PATH ?? "" };
    const lazarus = (...words: string[]) =>
      runProgram(process.execPath, [LAUNCHER, ...words], { env, cwd: directory });
    lazarus(
      ..."flow start -w report --agent anna --idempotency report-11 --step fetch --remaining write send".split(
        " ",
      ),
    );
    const hot = (...words: string[]): Contest => ({
      name: `\`${words.slice(0, 2).join(" ")}\``,
      goal: 1.8,
      rounds: START_ROUNDS,
      ours: { name: `lazarus ${words.join(" ")}`, run: () => lazarus(...words) },
      peer: {
        name: "node -e 0",
        run: () => runProgram(process.execPath, ["-e", "0"], { env, cwd: directory }),
      },
    });
    return [
      hot("flow", "update", "-w", "report", "--complete", "fetch"),
      hot("flow", "resume", "-w", "report"),
      ...(await libraryContests(join(directory, "library"))),
      ...manyContests(join(directory, "many"), env),
    ];
  },
};

async function libraryContests(root: string): Promise<Contest[]> {
  const workspace = { machine: systemMachine, root };
  const me = selfOwner(systemMachine.processes);
  const flow = {
    workflow: "report",
    agent: "anna",
    idempotency: "k",
    step: "fetch",
    remaining: ["write", "send"],
  };
  mkdirSync(root, { recursive: true });
  const { document } = await startFlow(workspace, flow, { me });
  const bytes = Buffer.from(`${JSON.stringify(document, null, 2)}\n`);
  const probe = join(root, "probe");
  const ours = {
    name: "changeFlow({ complete })",
    run: () => changeFlow(workspace, { workflow: "report" }, { complete: ["fetch"] }, me),
  };
  const before = () => rmSync(probe, { force: true });
  const writeOnce = () => {
    const fd = openSync(probe, "wx");
    writeSync(fd, bytes);
    fsyncSync(fd);
    closeSync(fd);
  };
  const replace = () => replaceFile(systemMachine.disk, join(root, "replaced"), bytes);
  const rounds = LIBRARY_ROUNDS;
  return [
    {
      name: "library update ÷ one fsync",
      goal: 2,
      rounds,
      ours,
      peer: { name: "write + fsync of a new file", run: writeOnce },
      before,
    },
    // Most of the time goes into the durable replacement, which needs two fsyncs.
    {
      name: "bare replacement ÷ one fsync",
      rounds,
      ours: { name: "replaceFile", run: replace },
      peer: { name: "write + fsync of a new file", run: writeOnce },
      before,
    },
    {
      name: "library update ÷ bare replacement",
      rounds,
      ours,
      peer: { name: "replaceFile", run: replace },
      before,
    },
  ];
}

function manyContests(root: string, env: Record<string, string>): Contest[] {
  makeFlows(root);
  const interpreter = runProgram("python3", ["-c", "import sys; print(sys.executable)"], {
    output: true,
  }).trim();
  const python = (output: boolean, ...words: string[]) =>
    runProgram(interpreter, ["-I", PYTHON_FLOWS, ...words], { env, output });
  const lazarus = (output: boolean, ...words: string[]) => {
    // selfcheck exits 3 when it finds something; that is not a failure.
    const line = `"$0" "$@"; code=$?; [ $code = 0 ] || [ $code = 3 ]`;
    return runProgram("/bin/sh", ["-c", line, process.execPath, LAUNCHER, "flow", ...words, "--root", root], {
      env,
      output,
    });
  };
  const minutes = String(STALE_MINUTES);
  const stale = /stale_checkpoints=(\d+)/;
  const ourStale = stale.exec(lazarus(true, "selfcheck", "--stale-min", minutes))?.[1];
  const ourLines = lazarus(true, "list").split("\n").length;
  if (ourStale === undefined || ourStale !== stale.exec(python(true, "selfcheck", root, minutes))?.[1]) {
    throw new Error("the two self-checks disagree");
  }
  if (ourLines !== python(true, "list", root).split("\n").length) throw new Error("the two lists disagree");
  const contest = (name: string, ours: string[], theirs: string[]): Contest => ({
    name: `\`flow ${name}\` of ${FLOWS.toLocaleString("en")} files`,
    goal: 0.5,
    rounds: SCAN_ROUNDS,
    ours: { name: `lazarus flow ${ours.join(" ")}`, run: () => lazarus(false, ...ours) },
    peer: { name: `python3 flow_files.py ${name}`, run: () => python(false, ...theirs) },
  });
  return [
    contest("list", ["list"], ["list", root]),
    contest("selfcheck", ["selfcheck", "--stale-min", minutes], ["selfcheck", root, minutes]),
  ];
}

/** Every fourth is unfinished, every fortieth of those stale, every thousandth damaged. */
function makeFlows(root: string): void {
  const directory = join(root, "memory", "checkpoints");
  mkdirSync(directory, { recursive: true });
  const nowMs = systemMachine.clock.nowMs();
  for (let n = 0; n < FLOWS; n += 1) {
    const workflowId = `flow-${String(n).padStart(5, "0")}`;
    const unfinished = n % 4 === 0;
    const document = withCheckpointHash({
      schemaVersion: "1.0",
      workflowId,
      agentId: `agent-${n % 7}`,
      status: unfinished ? "in_progress" : "done",
      currentStep: "write the report",
      completedSteps: ["fetch the mail", "sort it"],
      remainingSteps: unfinished ? ["write the report", "send it"] : [],
      handoffTo: null,
      notes: "waiting for the answer of the second server",
      idempotencyKey: `key-${n}`,
      updatedAt: formatIso(n % 160 === 0 ? nowMs - DAY_MS : nowMs + DAY_MS),
      expiresAt: formatIso(nowMs + 7 * DAY_MS),
    });
    const text = `${JSON.stringify(document, null, 2)}\n`;
    writeFileSync(join(directory, `${workflowId}.json`), n % 1000 === 1 ? text.slice(0, -20) : text);
  }
}
