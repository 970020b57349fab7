// Real agent CLIs against the mock model, through the built `lazarus`: npm run test:agents. A CLI that cannot be installed is
// named and counts as not run. AGENTS=claude,codex limits the CLIs; LAZARUS_ROUNDS and LAZARUS_SEED choose the kills.
import { spawnSync } from "node:child_process";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findAdapter } from "../../../src/agents/adapters.ts";
import { createRandom } from "../../../src/testing/seeded-ids.ts";
import { killIfRunning } from "../../pit/pit-world.ts";
import { AGENTS } from "./agents.ts";
import { installAgent } from "./install.ts";
import { createRealWorld, MISSION, type RealWorld, STEPS, TRANSCRIPTS } from "./real-world.ts";
import { FULL_ROUNDS, KILLS, keepResult, RESTORE } from "./results.ts";

const ROUNDS = Number(process.env.LAZARUS_ROUNDS ?? 3);
const SEED = Number(process.env.LAZARUS_SEED ?? 20_261_118);
const names = Object.keys(AGENTS).filter((name) => (process.env.AGENTS ?? name).split(",").includes(name));
const EVERY_CHAPTER = Array.from({ length: STEPS }, (_, index) => `chapter-${index + 1}.md`);

/** The moments of a job that a test can wait for, without looking at a clock. */
const MOMENTS = ["thinking", "effect", "file"] as const;

function reached(
  { model, effects, chapters }: RealWorld,
  moment: (typeof MOMENTS)[number],
  step: number,
): boolean {
  if (moment === "thinking") return model.requests.some(({ next }) => next === step);
  return moment === "effect" ? effects()[step] !== undefined : chapters().includes(`chapter-${step}.md`);
}

/** No life lost its conversation. If the agent had not written a result yet, it returns to that step and checks. */
function expectContinued({ model }: RealWorld): void {
  const steps = model.requests
    .map(({ next }) => next)
    .filter((next): next is number => typeof next === "number");
  for (const [index, step] of steps.entries())
    expect(step).toBeGreaterThanOrEqual((steps[index - 1] ?? 1) - 1);
}

describe.each(names)("%s", (name) => {
  const installed = installAgent(name);
  const runs = test.skipIf("problem" in installed);
  const open = (hold?: number) =>
    createRealWorld(name, {
      bin: "bin" in installed ? installed.bin : "",
      ...(hold !== undefined && { hold }),
    });
  if ("problem" in installed) process.stderr.write(`not run: ${name}: ${installed.problem}\n`);

  // Gemini, Pi, Cline and OpenClaw have no option for it.
  const hasMcp = findAdapter(name)!.mcp !== undefined;
  test.skipIf("problem" in installed || !hasMcp)(
    "run --mcp gives the model our tools, in every life",
    async () => {
      await using real = await createRealWorld(name, {
        bin: "bin" in installed ? installed.bin : "",
        mcp: true,
      });
      await real.world.openPit();
      real.start();
      await real.world.until("effect 2", () => reached(real, "effect", 2));
      const before = real.model.requests.length;
      real.killAll();
      await real.untilState("finished");
      const isKnown = (requests: typeof real.model.requests) => requests.some(({ hasTools }) => hasTools);
      expect([
        isKnown(real.model.requests.slice(0, before)),
        isKnown(real.model.requests.slice(before)),
      ]).toEqual([true, true]);
    },
  );

  runs(`killed at ${ROUNDS} random moments`, async () => {
    const random = createRandom(SEED);
    const tally = { revived: 0, twice: 0, asked: 0 };
    for (let round = 0; round < ROUNDS; round += 1) {
      const step = random.int(1, STEPS);
      const moment = random.pick(MOMENTS);
      const victims = random.pick(["its recorded process", "everything"] as const);
      await using real = await open();
      await real.world.openPit();
      if (moment === "thinking") real.model.think(step);
      real.start();
      await real.world.until(`${moment} ${step}`, () => reached(real, moment, step));
      if (victims === "everything") real.killAll();
      else real.kill();
      real.model.think(null);
      const state = await real.untilState("finished", "asking", "tombstone");
      process.stderr.write(
        `${name} round ${round}: killed ${victims} at ${moment} ${step}: ${state} ${JSON.stringify(real.effects())}\n`,
      );
      if (state === "asking") tally.asked += 1;
      else {
        expect(state).toBe("finished");
        expect(real.chapters()).toEqual(EVERY_CHAPTER);
        expect(real.world.record(MISSION).end.open_calls).toEqual([]);
        if (AGENTS[name]!.restarts)
          expect(real.why()).toContain(`started over with a new conversation of ${name}`);
        else expectContinued(real);
        tally.revived += 1;
        tally.twice += Object.values(real.effects()).filter((count) => count > 1).length;
      }
    }
    expect(tally).toMatchObject({ twice: 0 });
    const asked = tally.asked === 0 ? "" : `, ${tally.asked} asked`;
    const outcome = `${tally.revived} of ${ROUNDS}${asked}`;
    if (ROUNDS >= FULL_ROUNDS) keepResult(name, KILLS, outcome);
    else process.stderr.write(`${name}: ${outcome}; only a run of ${FULL_ROUNDS} rounds is kept\n`);
  });

  test.skipIf("problem" in installed || name !== "claude")(
    "a session of its own background service is watched, not started again, and its hooks report",
    async () => {
      await using real = await open();
      await real.world.openPit();
      const trusted = { [real.work]: { hasTrustDialogAccepted: true } };
      writeFileSync(
        join(real.world.directory, "user", ".claude.json"),
        JSON.stringify({
          hasCompletedOnboarding: true,
          customApiKeyResponses: { approved: ["dummy"] },
          projects: trusted,
        }),
      );
      expect(real.run("install", name).exit).toBe(0);
      expect(real.run("protect", real.work, "--mission", MISSION).exit).toBe(0);
      const claude = (...args: string[]) =>
        spawnSync(name, args, { cwd: real.work, env: real.env, encoding: "utf8" }).stdout;
      claude("--bg", "--allowedTools", "Bash", "--", "Write the book");
      await real.world.until("effect 2", () => reached(real, "effect", 2));
      const [{ pid }] = JSON.parse(claude("agents", "--json")) as [{ pid: number }];
      const { exit, stderr } = real.run("watch", MISSION, `--pid=${pid}`, "--", name, "--continue");
      expect([exit, stderr]).toEqual([2, expect.stringContaining("Claude's own background service")]);
      expect(real.run("watch", MISSION, `--pid=${pid}`).exit).toBe(0);
      const reports = join(real.world.home, "run", "agents", MISSION, "hooks.jsonl");
      await real.world.until("the end of the turn", () =>
        readFileSync(reports, "utf8").includes('"kind":"turn-end"'),
      );
      killIfRunning(pid);
      await real.untilState("finished");
      expect(real.chapters()).toEqual(EVERY_CHAPTER);
    },
  );

  const moves = test.skipIf("problem" in installed || AGENTS[name]!.isShared === true);
  moves("restored to step 2: conversation and files are both there, and undo brings both back", async () => {
    await using real = await open();
    await real.world.openPit();
    real.model.think(3);
    real.start();
    await real.world.until("step 2", () => reached(real, "thinking", 3));
    expect(real.run("checkpoint", MISSION).exit).toBeOneOf([0, 3]);
    real.model.think(null);
    await real.world.until("step 4", () => reached(real, "thinking", 5));
    real.run("stop", MISSION);
    const point = real.world.checkpoints(MISSION).find(({ reason }) => reason === "manual")!;
    const before = real.model.requests.length;
    const chapters = real.chapters();
    const transcripts = real.transcripts();
    expect(real.run("restore", MISSION, point.checkpoint_id).exit).toBe(0);
    expect(real.chapters().length).toBeLessThan(4);
    if (Object.keys(transcripts).length > 0) expect(real.transcripts()).not.toEqual(transcripts);
    expect(real.run("undo", MISSION).exit).toBe(0);
    expect(real.chapters()).toEqual(chapters);
    expect(real.transcripts()).toEqual(transcripts);
    expect(real.run("restore", MISSION, point.checkpoint_id).exit).toBe(0);
    expect(real.run("revive", MISSION).exit).toBe(0);
    await real.untilState("finished");
    const asked = real.model.requests.slice(before).filter(({ next }) => next !== "side");
    // A request of the life that was stopped may be read late: this process was waiting for a command.
    expect(asked.map(({ next }) => next).slice(-5)).toEqual([3, 4, 5, 6, "done"]);
    expect(real.chapters()).toEqual(EVERY_CHAPTER);
    keepResult(name, RESTORE, "both at step 2, and back");
  });

  moves("its conversation is gone: it starts over, and says so", async () => {
    await using real = await open();
    await real.world.openPit();
    real.start();
    await real.world.until("step 2", () => reached(real, "file", 2));
    real.run("stop", MISSION);
    const home = join(real.world.directory, "user");
    for (const path of TRANSCRIPTS) rmSync(join(home, path), { recursive: true, force: true });
    real.run("revive", MISSION);
    await real.untilState("finished");
    expect(real.chapters()).toEqual(EVERY_CHAPTER);
  });
});
