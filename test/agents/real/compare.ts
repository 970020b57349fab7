// What the same CLI does without Lazarus: the job is killed during its third step, and then
//   restart   the same command runs again, as with systemd's Restart=always, pm2 or a loop in a shell
//   continue  the CLI's own resume of the newest conversation of the directory (claude --continue …)
//   tmux      tmux-resurrect saved the pane during the second step, and restores it in a new tmux server; only with
//             RESURRECT=DIR, a checkout of the plugin
// Prints how many steps were done twice and whether the model saw the earlier conversation, for report.ts.
//   [RESURRECT=DIR] [WAYS=again,own,tmux] node test/agents/real/compare.ts [ROUNDS] [AGENT…]
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { AGENTS } from "./agents.ts";
import { installAgent } from "./install.ts";
import { createRealWorld, type RealWorld, STEPS } from "./real-world.ts";
import { CONTINUED, keepResult, RESTART, TMUX } from "./results.ts";
import { openTmux } from "./tmux.ts";

const GO_ON = "Go on where you stopped.";
const CONTINUE: Readonly<Record<string, readonly string[]>> = {
  claude: [...AGENTS.claude!.args(GO_ON), "--continue"],
  codex: [
    ...["exec", "resume", "--last", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"],
    GO_ON,
  ],
  gemini: ["--yolo", "--skip-trust", "--resume", "latest", "-p", GO_ON],
  qwen: ["--yolo", "--auth-type", "openai", "--continue", "-p", GO_ON],
  opencode: ["run", "--continue", GO_ON],
  pi: ["-p", "--continue", GO_ON],
  copilot: ["--continue", "-p", GO_ON, "--allow-all-tools"],
};

interface Outcome {
  readonly twice: number;
  readonly continued: boolean;
  readonly chapters: number;
}

async function tryOnce(name: string, bin: string, again: readonly string[]): Promise<Outcome> {
  await using real = await createRealWorld(name, { bin, hold: 0.5 });
  const first = start(real, name, bin, AGENTS[name]!.args("Write the book"));
  while (real.effects()[3] === undefined) await sleep(10);
  // The whole process group: what a crash of the machine or of a service does.
  process.kill(-first.pid!, "SIGKILL");
  await once(first, "exit");
  const before = real.model.requests.length;
  await once(start(real, name, bin, again), "exit");
  return outcomeOf(real, before);
}

/** How long an agent may do nothing after tmux has started it again. */
const SILENCE_MS = 45_000;

async function tryTmux(name: string, bin: string, plugin: string): Promise<Outcome> {
  await using real = await createRealWorld(name, { bin, hold: 0.5 });
  const tmux = openTmux(real, plugin, environment(real, name, bin));
  // The plugin saves command lines without quotes.
  await tmux.start([name, ...AGENTS[name]!.args("Write")]);
  while (real.effects()[2] === undefined) await sleep(10);
  tmux.save();
  while (real.effects()[3] === undefined) await sleep(10);
  tmux.kill();
  const before = real.model.requests.length;
  await tmux.restore();
  let seen = -1;
  for (let sinceMs = Date.now(); Date.now() - sinceMs < SILENCE_MS; await sleep(100)) {
    if (real.model.requests.length !== seen) sinceMs = Date.now();
    seen = real.model.requests.length;
    if (real.chapters().length === STEPS && real.model.requests.at(-1)?.next === "done") break;
  }
  tmux.kill();
  return outcomeOf(real, before);
}

function outcomeOf(real: RealWorld, before: number): Outcome {
  const asked = real.model.requests.slice(before).find(({ next }) => next !== "side");
  return {
    twice: Object.values(real.effects()).filter((count) => count > 1).length,
    continued: asked !== undefined && asked.next !== 1,
    chapters: real.chapters().length,
  };
}

function environment(real: RealWorld, name: string, bin: string): Record<string, string> {
  const { PATH, ...env } = real.world.env;
  return { ...env, ...AGENTS[name]!.env(real.model.url), PATH: `${bin}:${PATH}` };
}

function start(real: RealWorld, name: string, bin: string, args: readonly string[]): ChildProcess {
  return spawn(name, [...args], {
    cwd: real.work,
    env: environment(real, name, bin),
    stdio: "ignore",
    detached: true,
  });
}

const [rounds = "5", ...chosen] = process.argv.slice(2);
for (const name of chosen.length > 0 ? chosen : Object.keys(CONTINUE)) {
  const installed = installAgent(name);
  if ("problem" in installed) {
    console.log(`${name}: not run: ${installed.problem}`);
    continue;
  }
  const { bin } = installed;
  const again = CONTINUE[name];
  const plugin = process.env.RESURRECT;
  const ways = [
    [RESTART, () => tryOnce(name, bin, AGENTS[name]!.args("Write the book"))],
    [CONTINUED, again && (() => tryOnce(name, bin, again))],
    [TMUX, plugin && (() => tryTmux(name, bin, plugin))],
  ] as const;
  for (const [way, tryIt] of ways) {
    if (
      !tryIt ||
      (process.env.WAYS !== undefined && !process.env.WAYS.split(",").some((each) => way.includes(each)))
    )
      continue;
    const outcomes: Outcome[] = [];
    for (let round = 0; round < Number(rounds); round += 1) outcomes.push(await tryIt());
    const twice = outcomes.reduce((sum, each) => sum + each.twice, 0);
    const continued = outcomes.filter((each) => each.continued).length;
    const complete = outcomes.filter(({ chapters }) => chapters === 6).length;
    keepResult(
      name,
      way,
      `continued ${continued} of ${rounds}, steps done twice ${twice}, finished ${complete}`,
    );
  }
}
