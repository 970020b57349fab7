// A durable run in a cell that is restored to an earlier step: finished effects are replayed from the effect history of the
// mission, interrupted ones are unknown, and the history is readable only for those who can read the run (INV-5, INV-7).
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { jsonSchema } from "ai";
import { describe, expect, it } from "vitest";
import { historyFile } from "../../src/effects/place.ts";
import {
  type Agent,
  createExecutor,
  openCellRunStore,
  type RunStoreOptions,
  recoverInterrupted,
  UnknownOutcomeError,
} from "../../src/run/index.ts";
import { createWorld, type World } from "../cli/hermetic.ts";
import { createScriptedModel, type Line } from "./scripted-model.ts";

const RUN = "r1";
const SECRET = `ghp_${"a1B2".repeat(9)}`;

interface MailRun extends Disposable {
  readonly world: World;
  readonly cell: string;
  /** Every mail, with the key that the tool received. */
  readonly mails: { readonly to: string; readonly key: string }[];
  /** Taken by the tool `save`, between two steps of the run. */
  checkpoint: string;
  /** Begins or resumes the run; the model answers from the script. */
  run(script: readonly Line[], options?: RunStoreOptions): Promise<string | undefined>;
  restore(): Promise<{ stdout: string; stderr: string }>;
}

async function createMailRun(): Promise<MailRun> {
  const world = createWorld();
  await world.call(["init", "m1"]);
  const cell = join(world.missions, "m1");
  const inputSchema = jsonSchema<{ to: string }>({ type: "object" });
  const mails: { to: string; key: string }[] = [];
  const agent: Agent = {
    id: "mailer",
    tools: {
      save: {
        inputSchema,
        effect: "read",
        execute: async () => {
          mail.checkpoint ||= (await world.call(["checkpoint", "m1"])).stdout.trim();
          return "saved";
        },
      },
      send: {
        inputSchema,
        effect: "once",
        execute: ({ to }, { effectId }) => {
          mails.push({ to, key: effectId });
          if (to === "nobody") throw new UnknownOutcomeError("no answer");
          return `sent to ${to}, token ${SECRET}`;
        },
      },
    },
  };
  const mail: MailRun = {
    world,
    cell,
    mails,
    checkpoint: "",
    async run(script, options) {
      await using store = openCellRunStore(cell, { leaseMs: 20, ...options });
      const executor = createExecutor({ model: createScriptedModel(script), store });
      if ((await store.head(RUN)) === undefined)
        return (await executor.run(agent, "go", { runId: RUN })).status;
      // The owner in the restored record is this process, so its lease has to end.
      while ((await store.listInterrupted()).length === 0)
        await new Promise((resolve) => setTimeout(resolve, 5));
      const [recovered] = await recoverInterrupted(executor, { agentFor: () => agent });
      return recovered?.how === "resumed" ? recovered.result.status : recovered?.how;
    },
    async restore() {
      const ended = await world.call(["restore", "m1", mail.checkpoint]);
      expect(ended.exit, ended.stderr).toBe(0);
      return ended;
    },
    [Symbol.dispose]: () => world[Symbol.dispose](),
  };
  return mail;
}

const save = { calls: [{ tool: "save", input: {} }] };
const send = (to: string) => ({ calls: [{ tool: "send", input: { to } }] });

describe("a run that was restored to an earlier step", () => {
  it("replays a finished effect, and the restore lists it as done since", async () => {
    using mail = await createMailRun();
    expect(await mail.run([save, send("anna"), "done"])).toBe("completed");
    expect(mail.mails).toEqual([{ to: "anna", key: "r1.2.0" }]);
    const { stderr } = await mail.restore();
    expect(stderr).toMatch(/done since that checkpoint, .*\n {2}run r1, "send": done at /);
    let result = "";
    const look: Line = () => "done again";
    expect(await mail.run([save, send("anna"), look])).toBe("completed");
    expect(mail.mails).toHaveLength(1);
    await using store = openCellRunStore(mail.cell);
    for (const { message } of (await store.load(RUN))!.transcript) result += JSON.stringify(message);
    // The model got the recorded result, without the secret.
    expect(result).toContain("sent to anna, token [redacted: ");
    expect(result).toContain("done again");
    expect(readFileSync(historyFile(mail.cell), "utf8")).not.toContain(SECRET);
  });

  it("makes a call with a different input, under its own key", async () => {
    using mail = await createMailRun();
    await mail.run([save, send("anna"), "done"]);
    await mail.restore();
    expect(await mail.run([save, send("berta"), "done"])).toBe("completed");
    await mail.restore();
    expect(await mail.run([save, send("berta"), "done"])).toBe("completed");
    expect(mail.mails).toEqual([
      { to: "anna", key: "r1.2.0" },
      { to: "berta", key: "r1.2.0~2" },
    ]);
    const status = JSON.parse((await mail.world.call(["status", "m1", "--json"])).stdout);
    expect(status.missions[0].done_since).toMatchObject([
      { source: "run", where: "r1", name: "send", state: "done" },
      { source: "run", where: "r1", name: "send", state: "done" },
    ]);
  });

  it("is parked when the effect was interrupted, and a human's decision is kept by the next restore", async () => {
    using mail = await createMailRun();
    const script = [save, send("nobody"), "done"];
    expect(await mail.run(script)).toBe("needs-human");
    await mail.restore();
    expect(await mail.run(script)).toBe("needs-human");
    const resolved = await mail.world.call(["runs", "resolve", "r1.2.0", "--done"]);
    expect(resolved.exit, resolved.stderr).toBe(0);
    expect(await mail.run(script)).toBe("completed");
    await mail.restore();
    expect(await mail.run(script)).toBe("completed");
    expect(mail.mails).toHaveLength(1);
  });

  it("keeps the results of an encrypted store encrypted", async () => {
    using mail = await createMailRun();
    const key = { encryptionKey: new Uint8Array(32).fill(7) };
    expect(await mail.run([save, send("anna"), "done"], key)).toBe("completed");
    expect(readFileSync(historyFile(mail.cell), "utf8")).not.toContain("sent to");
    await mail.restore();
    expect(await mail.run([save, send("anna"), "done"], key)).toBe("completed");
    expect(mail.mails).toHaveLength(1);
    await using store = openCellRunStore(mail.cell, key);
    expect(JSON.stringify((await store.load(RUN))!.transcript)).toContain("sent to anna");
  });
});
