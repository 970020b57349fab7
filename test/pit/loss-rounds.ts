// INV-10 under SIGKILL: pit, keeper and agent are killed at a random moment, and the work that no checkpoint holds is measured by the
// agent's own timestamps. What was finished longer ago than the limit must be saved. The machine's own delays are measured in the
// same run (how long points took, how late timers were) and added to the limit, so that a busy machine does not affect the result.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemMachine } from "../../src/platform/machine.ts";
import { openRegistry } from "../../src/registry/registry.ts";
import { openContents } from "../../src/snapshot/vault/contents.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { openVault } from "../../src/snapshot/vault/vault.ts";
import { createRandom } from "../../src/testing/index.ts";
import { createPitWorld, killIfRunning, type PitWorld } from "./pit-world.ts";

const WITHIN_MS = 1000;
/** The pit checks for changes, and whether a point is due, at its own intervals. */
const POLLS_MS = 250 + 250 + 50;

/** Appends a numbered line with the time, and now and then makes a directory that is named after the line. */
const AGENT = `i=0
while :; do
  i=$((i+1)); t=$(date +%s%3N)
  echo "$i $t" >> file
  if [ $((i % 7)) = 0 ]; then mkdir -p "made/$i" && echo "$t" > "made/$i/file"; fi
  sleep 0.02
done`;

export interface Loss {
  /** How long before the kills the oldest work was finished that no checkpoint holds. */
  readonly lostMs: number;
  /** How long ago it may have been: the setting, and how long the machine itself delayed a point. */
  readonly limitMs: number;
}

export async function killRound(seed: number): Promise<Loss> {
  const random = createRandom(seed);
  const world = createPitWorld();
  try {
    const pit = {
      protect_within_seconds: WITHIN_MS / 1000,
      // Sometimes it never pauses long enough, so that only the limit counts.
      quiet_seconds: random.pick([0.05, 3600]),
      protect_share: 1,
    };
    writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit }));
    const { pid } = await world.openPit();
    const timer = measureDelays();
    world.run(["run", "m1", "-d", "--revive", "no", "--no-baseline", "--", "sh", "-c", AGENT]);
    const points = () => world.checkpoints("m1").filter(({ reason }) => reason === "live").length;
    await world.until("two points", () => points() >= 2);
    await new Promise((resolve) => setTimeout(resolve, random.int(0, 1500)));
    const { keeper, agent } = world.life("m1");
    const killedMs = Date.now();
    for (const each of [pid!, keeper.pid, agent.pid]) killIfRunning(each);
    const delayMs = POLLS_MS + timer.stop() + 2 * longestPointMs(world);
    return { lostMs: killedMs - oldestLost(world, killedMs), limitMs: WITHIN_MS + delayMs };
  } finally {
    await world.close();
  }
}

/** When the oldest line was finished that the newest checkpoint lacks; `killedMs` if it has them all. */
function oldestLost(world: PitWorld, killedMs: number): number {
  const vault = openVault(systemMachine, join(world.home, "vault"), "m1");
  using contents = openContents(vault, readCheckpoint(vault, vault.list().at(-1)!).layers);
  const read = (path: string): string => {
    const entry = contents.listing.get(path);
    const chunks: Buffer[] = [];
    if (entry !== undefined) contents.read(entry, (chunk) => chunks.push(Buffer.from(chunk)));
    return Buffer.concat(chunks).toString();
  };
  const saved = read("worktree/file").split("\n").slice(0, -1);
  const hasSavedDirectory = (line: number) => read(`worktree/made/${line}/file`) !== "";
  // A line that was being written when the agent was killed is not finished.
  const file = readFileSync(join(world.missions, "m1/worktree/file"), "utf8");
  const all = file.split("\n").slice(0, -1);
  if (!saved.every((line, i) => line === all[i]))
    throw new Error("a checkpoint has lines that were never written");
  for (const [index, line] of all.entries()) {
    const [number, ms] = line.split(" ").map(Number) as [number, number];
    if (ms > killedMs) break;
    // The directory of the last line may not have been made.
    const isDirectoryLost = number % 7 === 0 && index < all.length - 1 && !hasSavedDirectory(number);
    if (index >= saved.length || isDirectoryLost) return ms;
  }
  return killedMs;
}

/** How late timers of this process are at most, until `stop`. */
function measureDelays(): { stop(): number } {
  let last = performance.now();
  let latestMs = 0;
  const everyMs = 20;
  const look = () => {
    const now = performance.now();
    latestMs = Math.max(latestMs, now - last - everyMs);
    last = now;
  };
  const timer = setInterval(look, everyMs);
  return {
    stop() {
      look();
      clearInterval(timer);
      return latestMs;
    },
  };
}

function longestPointMs({ home }: PitWorld): number {
  using registry = openRegistry(systemMachine, join(home, "registry.db"));
  const took = registry
    .events({ mission: "m1", last: 1000 })
    .map(({ kind, data }) => (kind === "checkpoint" && typeof data.took_ms === "number" ? data.took_ms : 0));
  return Math.max(0, ...took);
}
