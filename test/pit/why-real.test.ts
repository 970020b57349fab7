// The whole output of `why` for real deaths under one pit; times, pids and ids are replaced by names.
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createPitWorld, type PitWorld } from "./pit-world.ts";

interface Death {
  readonly mission: string;
  readonly command: readonly string[];
  readonly options?: readonly string[];
  /** What happens to it once it runs. */
  readonly kill?: (world: PitWorld, mission: string) => void;
  readonly state: string;
}

const sh = (script: string) => ["sh", "-c", script];
const SLEEP = sh("exec sleep 600");
const kill = (target: "agent" | "keeper", signal: NodeJS.Signals) => (world: PitWorld, mission: string) =>
  process.kill(world.life(mission)[target].pid, signal);

const DEATHS: readonly Death[] = [
  { mission: "killed", command: SLEEP, kill: kill("agent", "SIGKILL"), state: "asking" },
  { mission: "segfault", command: SLEEP, kill: kill("agent", "SIGSEGV"), state: "asking" },
  { mission: "failed", command: sh("echo \"KeyError: 'inbox'\"; exit 1"), state: "asking" },
  {
    mission: "quota",
    command: sh("echo 'usage limit reached, try again in 2 hours'; exit 1"),
    options: ["--revive", "yes"],
    state: "waiting",
  },
  { mission: "missing", command: sh("no-such-command"), state: "asking" },
  { mission: "permanent", command: sh("exit 78"), options: ["--revive", "yes"], state: "tombstone" },
  { mission: "orphaned", command: SLEEP, kill: kill("keeper", "SIGKILL"), state: "asking" },
  { mission: "stalled", command: SLEEP, options: ["--stall", "1"], state: "asking" },
  {
    mission: "stopped",
    command: SLEEP,
    kill: (world, mission) => world.run(["stop", mission]),
    state: "stopped",
  },
  { mission: "finished", command: sh("exit 0"), state: "finished" },
  { mission: "leftover", command: sh("setsid sleep 600 & exit 1"), state: "asking" },
  {
    mission: "no-cell",
    command: SLEEP,
    kill: (world, mission) => {
      rmSync(join(world.missions, mission), { recursive: true });
      kill("agent", "SIGKILL")(world, mission);
    },
    state: "asking",
  },
];

describe("why", () => {
  let world: PitWorld;
  beforeAll(async () => {
    world = createPitWorld();
    const pit = { grace_seconds: 5, quota_patterns: ["^usage limit reached"] };
    writeFileSync(join(world.home, "config.json"), JSON.stringify({ pit }));
    await world.openPit();
    for (const { mission, command, options = [], kill } of DEATHS) {
      world.run(["run", mission, "-d", ...options, "--", ...command]);
      kill?.(world, mission);
    }
  }, 300_000);
  afterAll(() => world.close());

  it.each(DEATHS.map((death) => [death.mission, death.state]))("%s", async (mission, state) => {
    await world.until(`the state ${state}`, () => world.state(mission) === state);
    const shown = world
      .show(`why ${mission}`)
      .replaceAll(/\b\d{8}-\d{6}-\w{6}\b/g, "<checkpoint>")
      // The message depends on the shell.
      .replaceAll(/\| .*no-such-command.*/g, "| <shell>: no-such-command")
      .replaceAll(/less than a second|\b\d+ (?:h|min|s)\b(?: \d+ (?:min|s)\b)?/g, "<time>");
    expect(shown).toMatchSnapshot();
  });
});
