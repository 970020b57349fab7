// Cells: start-up time of hot-path commands against an empty Node, and the scan against a Python script.
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isDeepStrictEqual } from "node:util";
import { type Bench, type Contest, runProgram } from "./harness.ts";

const LAUNCHER = join(import.meta.dirname, "..", "bin", "lazarus.js");
const PYTHON_SCAN = join(import.meta.dirname, "scan_cells.py");
/** What Claude Code passes to a hook before a tool call. */
const TOOL_CALL = JSON.stringify({
  session_id: "7d1c5d8e-6c0e-4f6e-9d53-0a4f4e1b2c3d",
  transcript_path: "/home/user/.claude/projects/-work/7d1c5d8e-6c0e-4f6e-9d53-0a4f4e1b2c3d.jsonl",
  cwd: "/work",
  hook_event_name: "PreToolUse",
  tool_name: "Bash",
  tool_input: { command: "make test", description: "Run the tests" },
  tool_use_id: "toolu_01",
});
const CELLS = 10_000;
const START_ROUNDS = 200;
const SCAN_ROUNDS = 15;

export const bench: Bench = {
  about: `Hot-path commands run between an agent's steps, so they are compared with the start of Node itself (the same
binary with an empty script). The scan of ${CELLS.toLocaleString("en")} cells in all states is compared with
\`bench/scan_cells.py\`, which produces the same report. Both sides include process start.`,
  prepare(directory) {
    // The variables of a life are for the hook, which does nothing without them.
    const env = {
      HOME: directory,
      LAZARUS_HOME: join(directory, "home"),
      LAZARUS_MISSION: "m1",
      LAZARUS_EPOCH: "1",
      PATH: process.env.PATH ?? "",
    };
    const lazarus = (...words: string[]) =>
      runProgram(process.execPath, [LAUNCHER, ...words], { env, cwd: directory });
    const hot = (goal: number, ...words: string[]): Contest => ({
      name: `start of \`${words.slice(0, -1).join(" ")}\``,
      goal,
      rounds: START_ROUNDS,
      ours: { name: `lazarus ${words.join(" ")}`, run: () => lazarus(...words) },
      peer: {
        name: "node -e 0",
        run: () => runProgram(process.execPath, ["-e", "0"], { env, cwd: directory }),
      },
    });
    lazarus("init", "m1");
    return [
      hot(1.6, "heartbeat", "m1"),
      hot(1.6, "job", "beat", "j1"),
      hot(1.8, "hook", "claude", TOOL_CALL),
      scanContest(directory, env),
    ];
  },
};

function scanContest(directory: string, env: Record<string, string>): Contest {
  const home = join(directory, "many");
  const missions = join(home, "missions");
  makeCells(missions);
  // The interpreter itself: a version manager's shim would slow the peer down.
  const interpreter = runProgram("python3", ["-c", "import sys; print(sys.executable)"], {
    output: true,
  }).trim();
  const python = (output = false) =>
    runProgram(interpreter, ["-I", PYTHON_SCAN, missions], { env, cwd: directory, output });
  const lazarus = (output = false) =>
    runProgram(process.execPath, [LAUNCHER, "scan", "--json"], {
      env: { ...env, LAZARUS_HOME: home },
      cwd: directory,
      output,
    });
  const ours = JSON.parse(lazarus(true));
  const theirs = JSON.parse(python(true));
  if (ours.cells.length !== CELLS || !isDeepStrictEqual(ours.summary, theirs.summary))
    throw new Error("the two scans disagree");
  return {
    name: `scan of ${CELLS.toLocaleString("en")} cells`,
    goal: 0.5,
    rounds: SCAN_ROUNDS,
    ours: { name: "lazarus scan --json", run: () => lazarus() },
    peer: { name: "python3 scan_cells.py", run: () => python() },
  };
}

function makeCells(missions: string): void {
  const now = Date.now() / 1000;
  for (let n = 0; n < CELLS; n += 1) {
    const root = join(missions, `mission-${String(n).padStart(5, "0")}`);
    for (const name of ["meta", "config", "state", "logs", "artifacts", "worktree"]) {
      // Every 50th lacks a directory.
      if (name !== "logs" || n % 50 !== 1) mkdirSync(join(root, name), { recursive: true });
    }
    // Every 50th has no heartbeat; every tenth is stale.
    if (n % 50 === 2) continue;
    const heartbeat = {
      mission_id: `mission-${n}`,
      timestamp: n % 10 === 3 ? now - 1e6 : now + 1e6,
      status: "ok",
    };
    writeFileSync(join(root, "state", "heartbeat.json"), `${JSON.stringify(heartbeat, null, 2)}\n`);
  }
}
