// Kills `flow exec` at random moments until it finishes, and counts the entries that its steps wrote to an external log.
// Shared by the short test and the soak test.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createRandom } from "../../src/testing/index.ts";
import { createFixture, runLine } from "./fixture.ts";

export interface Tally {
  readonly kills: number;
  readonly runs: number;
  /** Steps that were reported unknown, and resolved by checking the log. */
  readonly unknown: number;
}

const STEPS = 6;

/** Runs plans and kills them `kills` times. Throws when a step is missing, or twice without having been reported. */
export async function killAtRandom(kills: number, seed: number): Promise<Tally> {
  const random = createRandom(seed);
  const tally = { kills: 0, runs: 0, unknown: 0 };
  let wholeRunMs = 0;
  while (tally.kills < kills) {
    // Measured again now and then, since the machine's load changes: kills must be spread over the whole run.
    if (wholeRunMs === 0 || random.chance(0.2)) wholeRunMs = await measure(seed);
    await onePlan(random, tally, kills, seed, wholeRunMs);
  }
  return tally;
}

/** The duration of a run without kills. */
async function measure(seed: number): Promise<number> {
  const start = performance.now();
  await onePlan(createRandom(seed), { kills: 0, runs: 0, unknown: 0 }, 0, seed, 0);
  return performance.now() - start;
}

async function onePlan(
  random: ReturnType<typeof createRandom>,
  tally: { kills: number; runs: number; unknown: number },
  kills: number,
  seed: number,
  wholeRunMs: number,
): Promise<void> {
  using fixture = createFixture();
  const log = join(fixture.root, "log");
  const keys = Array.from({ length: STEPS }, (_, i) => `step-${i}`);
  const steps = keys.map((key) => `  - key: ${key}\n    run: sleep 0.01; echo ${key} >> log; sleep 0.01\n`);
  writeFileSync(join(fixture.root, "plan.yaml"), `workflow: kills\nsteps:\n${steps.join("")}`);
  writeFileSync(log, "");
  const logged = () => readFileSync(log, "utf8").split("\n");
  const count = (key: string) => logged().filter((line) => line === key).length;
  const exec = (...more: string[]) => ["flow", "exec", "plan.yaml", "--json", ...more];
  let retry: string[] = [];
  for (;;) {
    tally.runs += 1;
    const wanted = tally.kills < kills && random.chance(0.9);
    // From the first tenth to a little past the end.
    const killAfterMs = wanted ? Math.round((wholeRunMs * random.int(10, 105)) / 100) : undefined;
    const { code, signal, stdout, stderr } = await runLine(exec(...retry), {
      cwd: fixture.root,
      ...(killAfterMs === undefined ? {} : { killAfterMs }),
    });
    const fail = (why: string): never => {
      throw new Error(`seed ${seed}: ${why}\nlog: ${logged().join(" ")}\n${stdout}${stderr}`);
    };
    for (const key of keys)
      if (count(key) > 1) fail(`${key} happened ${count(key)} times without being reported`);
    retry = [];
    if (signal === "SIGKILL") {
      tally.kills += 1;
    } else if (code === 4) {
      tally.unknown += 1;
      // Resolve it as a user would. While the killed command is still running, the exit code is 10.
      const key = (JSON.parse(stdout) as { details: { key: string } }).details.key;
      if (count(key) === 0) retry = ["--retry-unknown", key];
      else await runLine(["flow", "update", "-w", "kills", "--complete", key], { cwd: fixture.root });
    } else if (code === 0) {
      for (const key of keys) if (count(key) !== 1) fail(`${key} is missing`);
      return;
    } else if (code !== 10) fail(`ended with ${code}`);
  }
}
