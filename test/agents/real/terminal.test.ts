// Real agent CLIs in a terminal: typed into, hung up, killed, and attached to again. npm run test:agents -- terminal
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { killIfRunning } from "../../pit/pit-world.ts";
import { openUserTerminal, type UserTerminal } from "../../pit/user-terminal.ts";
import { installAgent } from "./install.ts";
import { createRealWorld, MISSION, type RealWorld, STEPS } from "./real-world.ts";
import { keepResult } from "./results.ts";

interface Interactive {
  readonly args: readonly string[];
  /** Files in its home, so that it asks nothing before the first prompt. */
  readonly files?: (work: string) => Readonly<Record<string, string>>;
  /** It ignores a prompt when it resumes: the user has to say that it goes on, and what was cut off. */
  readonly waitsForUser?: boolean;
}

const AGENTS: Readonly<Record<string, Interactive>> = {
  claude: {
    args: ["--allowedTools", "Bash"],
    files: (work) => ({
      ".claude.json": JSON.stringify({
        hasCompletedOnboarding: true,
        theme: "dark",
        customApiKeyResponses: { approved: ["dummy"], rejected: [] },
        projects: { [work]: { hasTrustDialogAccepted: true, hasCompletedProjectOnboarding: true } },
      }),
    }),
  },
  codex: {
    args: ["--dangerously-bypass-approvals-and-sandbox"],
  },
  gemini: { args: ["--yolo", "--skip-trust"] },
  qwen: { args: ["--yolo", "--auth-type", "openai"] },
  opencode: { args: [] },
  pi: { args: [] },
  copilot: {
    args: ["--allow-all-tools"],
    files: (work) => ({ ".copilot/config.json": JSON.stringify({ trusted_folders: [work] }) }),
  },
  cline: { args: ["-i"], waitsForUser: true },
};

/** `openclaw chat` continues its own session in every life, without Lazarus: there is nothing to test. */
const NOT_RUN: Readonly<Record<string, string>> = {
  openclaw: "only openclaw agent --local has a conversation that Lazarus continues, and that has no terminal",
};
for (const [name, reason] of Object.entries(NOT_RUN)) process.stderr.write(`not run: ${name}: ${reason}\n`);

const names = Object.keys(AGENTS).filter((name) => (process.env.AGENTS ?? name).split(",").includes(name));
const ALL_ONCE = Object.fromEntries(Array.from({ length: STEPS }, (_, index) => [String(index + 1), 1]));

/** Types until the model is called: a CLI discards input that arrives before it is ready. */
async function ask(real: RealWorld, user: UserTerminal, text: string): Promise<void> {
  const isAsked = () =>
    real.model.requests.some(({ prompt, next }) => prompt.includes(text) && next !== "side");
  for (let tries = 0; !isAsked(); tries += 1) {
    if (tries > 300) throw new Error(`the model was never asked "${text}": ${user.output.slice(-4000)}`);
    user.type(tries % 2 === 0 ? text : "\r");
    await sleep(1000);
  }
}

/** As a user would copy it from `lazarus why`. */
function cutOff({ world }: RealWorld): string {
  const calls: readonly { readonly summary: string }[] = world.record(MISSION).end.open_calls;
  return calls.map(({ summary }) => /chapter-\d/.exec(summary)?.[0]).join(", ") || "nothing";
}

describe.each(names)("%s", (name) => {
  const installed = installAgent(name);
  const bin = "bin" in installed ? installed.bin : "";
  if ("problem" in installed) process.stderr.write(`not run: ${name}: ${installed.problem}\n`);

  test.skipIf("problem" in installed)(
    "in a terminal: typed into, hung up, killed, attached to again",
    async () => {
      await using real = await createRealWorld(name, { bin, hold: 1 });
      const { args, files, waitsForUser } = AGENTS[name]!;
      for (const [path, text] of Object.entries(files?.(real.work) ?? {})) {
        const file = join(real.world.directory, "user", path);
        mkdirSync(dirname(file), { recursive: true });
        writeFileSync(file, text);
      }
      const env = Object.fromEntries(
        Object.entries(real.env).filter((entry): entry is [string, string] => !!entry[1]),
      );
      await real.world.openPit();
      const words = ["run", MISSION, "--revive", "yes", "--in", real.work, "--", name, ...args];
      const user = openUserTerminal(real.world, words, { env, columns: 120, rows: 40 });
      await ask(real, user, "Write the book");
      const step = (n: number) =>
        real.world.until(`step ${n}: ${user.output.slice(-4000)}`, () => real.effects()[n] !== undefined);
      await step(1);
      const { pid } = real.world.life(MISSION).agent;
      user.close();
      await user.ended;
      // It keeps working without a viewer.
      await step(3);
      expect(real.world.life(MISSION).agent.pid).toBe(pid);
      killIfRunning(pid);
      await real.world.until("the next life", () => real.world.life(MISSION).agent.pid !== pid);
      const again = openUserTerminal(real.world, ["attach", MISSION], { env, columns: 120, rows: 40 });
      const isToldToType = () =>
        real.run("status").stdout.includes(`${name} shows its conversation and waits for you`);
      expect(isToldToType()).toBe(waitsForUser === true);
      if (waitsForUser) await ask(real, again, `Go on. Cut off, outcome unknown: ${cutOff(real)}`);
      await real.world.until("the end of the job", () =>
        real.model.requests.some(({ next, status }) => next === "done" && status === 200),
      );
      await ask(real, again, "That was all");
      // The model was sent the whole conversation, in which all chapters are written.
      const answered = real.model.requests.filter(({ prompt }) => prompt.includes("That was all"));
      expect(answered.map(({ next }) => next)).toContain("done");
      expect(real.effects()).toEqual(ALL_ONCE);
      expect(real.chapters()).toHaveLength(STEPS);
      expect(real.why()).toContain(`resumed the conversation of ${name}`);
      keepResult(name, "terminal hung up, agent killed, attached again", "the conversation is there");
      again.close();
    },
  );
});
