// `lazarus runs` on a cell with a parked run, from the list to the resume.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jsonSchema } from "ai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import {
  createExecutor,
  openCellRunStore,
  type RunStoreOptions,
  recoverInterrupted,
  UnknownOutcomeError,
} from "../../src/run/index.ts";
import { bundleProgram } from "../bundle.ts";
import { runCli } from "./run-cli.ts";
import { createScriptedModel } from "./scripted-model.ts";

const CRASHING = await bundleProgram(join(import.meta.dirname, "crashing-program.ts"));
let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-runs-cli-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

const lazarus = (words: string, env: Record<string, string> = {}) => runCli(home, words.split(" "), env);

const agent = {
  id: "mailer",
  tools: {
    send: {
      inputSchema: jsonSchema<object>({ type: "object" }),
      effect: "once" as const,
      execute: () => {
        throw new UnknownOutcomeError("no answer");
      },
    },
  },
};

async function parkedRun(options: RunStoreOptions = {}) {
  await using store = openCellRunStore(join(home, "missions", "m1"), options);
  const model = createScriptedModel([
    { calls: [{ tool: "send", input: { to: "a@example.org" } }] },
    "all sent",
  ]);
  const executor = createExecutor({ model, store });
  return await executor.run(agent, "send the mail \u001b[2J", { runId: "r1" });
}

describe.each(["read", "idempotent"])("a run whose %s tool kills the process", (effect) => {
  const boot = (state: "crashing" | "fixed") => {
    const cell = join(home, "missions", "m1");
    const { signal, stdout } = spawnSync(process.execPath, [CRASHING, cell, effect, state], {
      encoding: "utf8",
    });
    return { signal, recovered: stdout === "" ? [] : JSON.parse(stdout) };
  };
  test("is skipped after five attempts until `runs retry`", async () => {
    mkdirSync(join(home, "missions", "m1", "state"), { recursive: true });
    for (let life = 0; life < 6; life += 1) expect(boot("crashing").signal, `life ${life}`).toBe("SIGKILL");
    const [skipped] = boot("crashing").recovered;
    expect(skipped).toMatchObject({ how: "skipped" });
    expect(skipped.reason).toContain("resumed 5 times");
    expect(skipped.reason).toContain("lazarus runs retry r1");
    const shown = await lazarus("runs show r1");
    expect(shown.out).toContain("started 5 times since its last step");
    expect(shown.err).toContain("lazarus runs retry r1");
    expect(await lazarus("runs retry r1")).toMatchObject({ exit: 0, out: "r1\n" });
    expect(boot("fixed").recovered).toMatchObject([{ how: "resumed", status: "completed" }]);
    expect((await lazarus("runs retry r1")).err).toContain("run r1 is completed: there is nothing to retry");
  });
});

describe("lazarus runs", () => {
  test("says that there are no runs", async () => {
    expect(await lazarus("runs")).toMatchObject({ exit: 0, out: "no runs\n" });
  });
  test("lists, shows and resolves; then the run is resumed", async () => {
    expect(await parkedRun()).toMatchObject({ status: "needs-human" });
    const list = await lazarus("runs --check");
    expect(list.exit).toBe(4);
    expect(list.out).toMatch(/r1\s+m1\s+mailer\s+needs-human\s+1\s+1/);
    expect(list.err).toContain("lazarus runs show r1");

    const shown = await lazarus("runs show r1");
    expect(shown.out).toContain("assistant calls send");
    expect(shown.out).toContain("r1.1.0  unknown  send (once)");
    expect(shown.out).not.toContain("\u001b");
    expect((await lazarus("runs show r --json")).json()).toMatchObject({
      schema: "lazarus.run/1",
      head: { status: "needs-human" },
      effects: [{ id: "r1.1.0", state: "unknown" }],
    });

    expect(await lazarus("runs resolve r1.1.0")).toMatchObject({ exit: 2 });
    expect(await lazarus("runs resolve r1.1.0 --done --retry")).toMatchObject({ exit: 2 });
    expect(await lazarus("runs resolve r1.9.9 --done")).toMatchObject({ exit: 6 });
    expect(await lazarus("runs resolve nonsense --done")).toMatchObject({ exit: 6 });
    expect(await lazarus('runs resolve r1.1.0 --done --output {"id":7}')).toMatchObject({
      exit: 0,
      out: "r1.1.0 done\n",
    });
    expect(await lazarus("runs resolve r1.1.0 --retry")).toMatchObject({ exit: 7 });

    await using store = openCellRunStore(join(home, "missions", "m1"));
    const model = createScriptedModel(["", "all sent"]);
    const executor = createExecutor({ model, store });
    const [resumed] = await recoverInterrupted(executor, { agentFor: () => agent });
    expect(resumed).toMatchObject({ result: { status: "completed", output: "all sent" } });
    expect((await lazarus("runs --check")).exit).toBe(0);
  });
  test("forks at a step and prunes", async () => {
    await parkedRun();
    await lazarus("runs resolve r1.1.0 --fail --reason bounced");
    expect(await lazarus("runs fork r1")).toMatchObject({ exit: 2 });
    expect(await lazarus("runs fork r1 --at 9")).toMatchObject({ exit: 6 });
    const fork = await lazarus("runs fork r1 --at 0 --json");
    expect(fork.json()).toMatchObject({ fork_of: "r1", step: 0 });
    expect((await lazarus(`runs show ${fork.json().run_id}`)).out).toContain("forked from r1 at step 0");
    expect((await lazarus("runs prune --days 0")).out).toBe("0 runs pruned\n");
  });
  test("an unknown run, mission or store is named", async () => {
    expect(await lazarus("runs show nope")).toMatchObject({ exit: 6 });
    expect(await lazarus("runs --mission nope")).toMatchObject({ exit: 6 });
    expect(await lazarus("runs --store nope.db")).toMatchObject({ exit: 6 });
  });
  test("finds a run beyond the listed ones by id, and says that the list is truncated", async () => {
    const cell = join(home, "missions", "m1");
    {
      await using store = openCellRunStore(cell, { keepSecrets: true });
      const executor = createExecutor({
        model: createScriptedModel(["end"]),
        store,
      });
      const ids = Array.from({ length: 1005 }, (_, i) => `n${String(i).padStart(4, "0")}`);
      await Promise.all(ids.map((runId) => executor.run({ id: "a" }, "go", { runId })));
      // Ended long before the others.
      const { DatabaseSync } = await import("node:sqlite");
      const database = new DatabaseSync(join(cell, "state", "runs.db"));
      database.exec("UPDATE head SET updated_ms = 1 WHERE key = (SELECT key FROM run WHERE id = 'n0000')");
      database.close();
    }
    const store = `--store ${join(cell, "state", "runs.db")}`;
    for (const choice of ["", " --mission m1", ` ${store}`]) {
      const list = await lazarus(`runs${choice}`);
      expect(list.out.split("\n").length).toBe(1002);
      expect(list.err).toContain("has more runs than listed");
      expect(await lazarus(`runs show n0000${choice}`)).toMatchObject({ exit: 0 });
      expect(await lazarus(`runs show n000${choice}`)).toMatchObject({
        exit: 2,
        err: expect.stringContaining("matches 10 runs"),
      });
    }
  });
  test("names an unreadable store and lists the others", async () => {
    await parkedRun();
    const broken = join(home, "missions", "m2", "state");
    mkdirSync(broken, { recursive: true });
    writeFileSync(join(broken, "runs.db"), "this is not a database, whatever its name".repeat(40));
    const list = await lazarus("runs");
    expect(list.exit).toBe(8);
    expect(list.out).toContain("r1");
    expect(list.err).toMatch(/not listed: .*m2.*damaged/);
    expect((await lazarus("runs --json")).json()).toMatchObject({ problems: [{ mission: "m2" }] });
    expect(await lazarus("runs show r1")).toMatchObject({ exit: 0 });
    expect(await lazarus("runs show elsewhere")).toMatchObject({
      exit: 6,
      err: expect.stringMatching(/m2.*damaged/),
    });
    const pruned = await lazarus("runs prune --days 0");
    expect(pruned.exit).toBe(8);
    expect(pruned.err).toMatch(/not pruned: .*m2/);
  });
  test.each([
    ["runs resolve r1.1.0", 2, /exactly one of --done, --retry, --fail/],
    ["runs resolve r1.1.0 --done --fail", 2, /exactly one/],
    ["runs resolve r1.1.0 --retry --output {}", 2, /--output requires --done/],
    ["runs resolve r1.1.0 --done --reason x", 2, /--reason requires --fail/],
    ["runs resolve r1.1.0 --done --output {oops", 2, /not JSON/],
    ["runs resolve r1.1 --done", 6, /lazarus runs show/],
    ["runs resolve r1.1.7 --done", 6, /no effect/],
    ["runs resolve r1.-1.0 --done", 6, /not the id of an effect/],
    ["runs resolve ../../r1.1.0 --done", 6, /lazarus runs/],
    ["runs fork r1 --at -1", 2, /0 or more/],
    ["runs fork r1 --at 1.5", 6, /a step is an integer, 0 or more/],
    ["runs fork r1 --at 1", 6, /tool calls without a result[\s\S]*--at 0/],
    ["runs fork r1 --at 999999999999", 6, /no such step[\s\S]*--at 0/],
    ["runs fork r1 --at three", 2, /--at/],
    ["runs show ../../../etc/passwd", 6, /lazarus runs/],
    ["runs show %s%n%00", 6, /lazarus runs/],
    ["runs --mission ../../etc", 2, /mission/],
    ["runs prune --days -1", 2, /0 or more/],
    ["runs prune --keep many", 2, /--keep/],
  ])("`lazarus %s` is refused and changes nothing", async (words, exit, message) => {
    await parkedRun();
    const refused = await lazarus(words);
    expect(refused.err).toMatch(message);
    expect(refused.exit).toBe(exit);
    await using store = openCellRunStore(join(home, "missions", "m1"));
    expect(await store.list()).toMatchObject([{ runId: "r1", status: "needs-human" }]);
    expect(await store.effects("r1")).toMatchObject([{ state: "unknown", attempts: 1 }]);
  });
  test("an invalid key is refused, with the command that creates one", async () => {
    await parkedRun({ encryptionKey: new Uint8Array(32).fill(3) });
    for (const key of ["short", "!!!!", Buffer.alloc(33).toString("base64")]) {
      const refused = await lazarus("runs show r1", { LAZARUS_RUN_KEY: key });
      expect(refused).toMatchObject({ exit: 78, err: expect.stringContaining("openssl rand -base64 32") });
    }
    const none = await lazarus("runs resolve r1.1.0 --retry");
    expect(none).toMatchObject({ exit: 78, err: expect.stringContaining("LAZARUS_RUN_KEY") });
  });
  test("an encrypted store lists runs without its key and shows them with it", async () => {
    const encryptionKey = new Uint8Array(32).fill(3);
    await parkedRun({ encryptionKey });
    expect((await lazarus("runs")).out).toContain("needs-human");
    expect((await lazarus("runs show r1")).exit).toBe(78);
    const key = Buffer.from(encryptionKey).toString("base64");
    expect((await lazarus("runs show r1", { LAZARUS_RUN_KEY: key })).out).toContain("a@example.org");
    expect((await lazarus("runs resolve r1.1.0 --retry", { LAZARUS_RUN_KEY: key })).exit).toBe(0);
  });
});
