// What the same CLI does without Lazarus: the job is killed during its third step, and then
//   restart   the same command runs again, as with systemd's Restart=always, pm2 or a loop in a shell
//   continue  the CLI's own resume of the newest conversation of the directory (claude --continue …)
// Prints how many steps were done twice and whether the model saw the earlier conversation, for report.ts.
//   node test/agents/real/compare.ts [ROUNDS] [AGENT…]
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { setTimeout as sleep } from "node:timers/promises";
import { AGENTS } from "./agents.ts";
import { installAgent } from "./install.ts";
import { createRealWorld, type RealWorld } from "./real-world.ts";
import { CONTINUED, keepResult, RESTART } from "./results.ts";

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
  const asked = real.model.requests.slice(before).find(({ next }) => next !== "side");
  return {
    twice: Object.values(real.effects()).filter((count) => count > 1).length,
    continued: asked !== undefined && asked.next !== 1,
    chapters: real.chapters().length,
  };
}

function start(real: RealWorld, name: string, bin: string, args: readonly string[]): ChildProcess {
  const { PATH, ...env } = real.world.env;
  return spawn(name, [...args], {
    cwd: real.work,
    env: { ...env, ...AGENTS[name]!.env(real.model.url), PATH: `${bin}:${PATH}` },
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
  const ways = { restart: AGENTS[name]!.args("Write the book"), continue: CONTINUE[name] };
  for (const [way, args] of Object.entries(ways)) {
    if (args === undefined) continue;
    const outcomes: Outcome[] = [];
    for (let round = 0; round < Number(rounds); round += 1)
      outcomes.push(await tryOnce(name, installed.bin, args));
    const twice = outcomes.reduce((sum, each) => sum + each.twice, 0);
    const continued = outcomes.filter((each) => each.continued).length;
    const complete = outcomes.filter(({ chapters }) => chapters === 6).length;
    keepResult(
      name,
      way === "restart" ? RESTART : CONTINUED,
      `continued ${continued} of ${rounds}, steps done twice ${twice}, finished ${complete}`,
    );
  }
}
