// `lazarus runs …` on a cell with a parked run, from the list to the resume.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { jsonSchema } from "ai";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { runLine } from "../../src/cli/run-line.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import {
  createCheckpointer,
  createExecutor,
  openCellRunStore,
  type RunStoreOptions,
  recoverInterrupted,
  UnknownOutcomeError,
} from "../../src/run/index.ts";
import { createScriptedModel } from "./scripted-model.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-runs-cli-"));
});
afterEach(() => rmSync(home, { recursive: true, force: true }));

async function lazarus(words: string, env: Record<string, string> = {}) {
  let out = "";
  let err = "";
  const terminal = {
    out: (text: string) => {
      out += text;
    },
    err: (text: string) => {
      err += text;
    },
    ...{ isInteractive: false, outIsTerminal: false, errIsTerminal: false, columns: 120 },
  };
  const surroundings = { env: { LAZARUS_HOME: home, ...env }, cwd: home, isRoot: false };
  const signal = () => new AbortController().signal;
  const parts = { machine: systemMachine, surroundings, terminal, signal, callerPid: process.pid };
  const exit = await runLine(words.split(" "), parts);
  return { exit, out, err, json: () => JSON.parse(out) };
}

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
  const executor = createExecutor({ model, ports: { checkpointer: createCheckpointer(store) } });
  return await executor.run(agent, "send the mail \u001b[2J", { runId: "r1" });
}

describe("lazarus runs", () => {
  test("without runs says so", async () => {
    expect(await lazarus("runs")).toMatchObject({ exit: 0, out: "no runs\n" });
  });
  test("lists, shows, resolves, and the run goes on", async () => {
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
    const executor = createExecutor({ model, ports: { checkpointer: createCheckpointer(store) } });
    const [resumed] = await recoverInterrupted(executor, store, { agentFor: () => agent });
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
  test("an encrypted store lists without its key and shows with it", async () => {
    const encryptionKey = new Uint8Array(32).fill(3);
    await parkedRun({ encryptionKey });
    expect((await lazarus("runs")).out).toContain("needs-human");
    expect((await lazarus("runs show r1")).exit).toBe(78);
    const key = Buffer.from(encryptionKey).toString("base64");
    expect((await lazarus("runs show r1", { LAZARUS_RUN_KEY: key })).out).toContain("a@example.org");
    expect((await lazarus("runs resolve r1.1.0 --retry", { LAZARUS_RUN_KEY: key })).exit).toBe(0);
  });
});
