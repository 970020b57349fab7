// At-most-once commands of a flow in a cell: the records are restored with the cell, the effect history is not (INV-5).
import { existsSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { createWorld, type World } from "../cli/hermetic.ts";
import { runLine } from "./fixture.ts";

interface MailWorld extends World {
  lazarus(line: string): Promise<{ exit: number | null; stdout: string; stderr: string }>;
  /** Sends the mail through `flow once`. */
  send(more?: string, script?: string): Promise<{ exit: number | null; stdout: string; stderr: string }>;
  mails(): number;
  readonly root: string;
}

/** A mission with a flow that sends one mail to an outbox outside the cell, and a checkpoint from before. */
async function createMailWorld(): Promise<MailWorld & { checkpoint: string }> {
  const world = createWorld();
  const root = join(world.missions, "m1", "worktree");
  const outbox = world.path("outbox");
  const lazarus = (line: string) => world.call(line.split(" "));
  const mail: MailWorld = {
    ...world,
    root,
    lazarus,
    send: (more = "", script = `echo mail >>${outbox}; echo sent`) =>
      world.call([
        ...`flow once -w report --key send --root ${root} ${more}`.trim().split(" "),
        "--",
        "/bin/sh",
        "-c",
        script,
      ]),
    mails: () => (existsSync(outbox) ? readFileSync(outbox, "utf8").split("\n").length - 1 : 0),
  };
  await lazarus("init m1");
  const started = await lazarus(
    `flow start -w report --agent anna --idempotency r1 --step send --root ${root}`,
  );
  expect(started.exit, started.stderr).toBe(0);
  const checkpoint = (await lazarus("checkpoint m1")).stdout.trim();
  return { ...mail, checkpoint };
}

describe("after a restore to a checkpoint from before it ran", () => {
  it("a command is replayed with its exit code and output", async () => {
    using world = await createMailWorld();
    expect(await world.send()).toMatchObject({ exit: 0, stdout: "sent\n" });
    expect((await world.lazarus(`restore m1 ${world.checkpoint}`)).exit).toBe(0);
    const again = await world.send();
    expect(again).toMatchObject({ exit: 0, stdout: "sent\n" });
    expect(again.stderr).toContain("was already done");
    expect(world.mails()).toBe(1);
  });

  it("a failure is replayed, and runs again only with --retry-failed", async () => {
    using world = await createMailWorld();
    const outbox = world.path("outbox");
    expect((await world.send("", `echo mail >>${outbox}; exit 3`)).exit).toBe(3);
    await world.lazarus(`restore m1 ${world.checkpoint}`);
    expect((await world.send()).exit).toBe(3);
    expect(world.mails()).toBe(1);
    expect((await world.send("--retry-failed")).exit).toBe(0);
    expect(world.mails()).toBe(2);
    await world.lazarus(`restore m1 ${world.checkpoint}`);
    expect(await world.send("--retry-failed")).toMatchObject({ exit: 0, stdout: "sent\n" });
    expect(world.mails()).toBe(2);
  });

  it("a command killed midway is unknown, exit 4", async () => {
    using world = await createMailWorld();
    const killed = await runLine(
      ["flow", "once", "-w", "report", "--key", "send", "--root", world.root, "--", "true"],
      { cwd: world.cwd, crashAt: "flow.once.command-ended", env: world.env },
    );
    expect(killed.signal).toBe("SIGKILL");
    await world.lazarus(`restore m1 ${world.checkpoint}`);
    for (const more of ["", "--retry-failed"]) {
      const { exit, stderr } = await world.send(more);
      expect({ exit, stderr }).toEqual({ exit: 4, stderr: expect.stringContaining("is unknown") });
    }
    expect(world.mails()).toBe(0);
    expect((await world.send("--retry-unknown")).exit).toBe(0);
    expect(world.mails()).toBe(1);
  });

  it("a start without a pid file does not prove that the command never started", async () => {
    using world = await createMailWorld();
    const words = ["flow", "once", "-w", "report", "--key", "send", "--root", world.root, "--", "true"];
    const options = { cwd: world.cwd, env: world.env, crashAt: "flow.once.command-ended" };
    expect((await runLine(words, options)).signal).toBe("SIGKILL");
    // As if the checkpoint was taken between the record and the first instruction of the command.
    const records = join(world.root, "memory", "checkpoints", ".lazarus", "once", "report");
    for (const name of readdirSync(records)) if (name.endsWith(".pid")) rmSync(join(records, name));
    const checkpoint = (await world.lazarus("checkpoint m1")).stdout.trim();
    writeFileSync(join(world.root, "later"), "");
    await world.lazarus(`restore m1 ${checkpoint}`);
    expect((await world.send()).exit).toBe(4);
  });
});

describe("without a restore", () => {
  it("deleted records are replaced by the history", async () => {
    using world = await createMailWorld();
    await world.send();
    rmSync(join(world.root, "memory", "checkpoints", ".lazarus"), { recursive: true });
    expect(await world.send()).toMatchObject({ exit: 0, stdout: "sent\n" });
    expect(world.mails()).toBe(1);
  });

  const points = listCrashPoints(join(import.meta.dirname, "..", "..", "src"))
    .map(({ name }) => name)
    .filter((name) => name.startsWith("flow.once.") || name.startsWith("effects.append."));
  it.each(points)("killed at %s, the mail is sent at most once and is known or unknown", async (point) => {
    using world = await createMailWorld();
    const outbox = world.path("outbox");
    for (const nth of point.startsWith("effects.") ? [1, 2] : [1]) {
      const key = `send-${nth}`;
      const words = ["flow", "once", "-w", "report", "--key", key, "--root", world.root, "--"];
      const command = ["/bin/sh", "-c", `echo mail >>${outbox}`];
      const options = { cwd: world.cwd, env: world.env };
      const killed = await runLine([...words, ...command], { ...options, crashAt: `${point}#${nth}` });
      expect(killed.signal, killed.stderr).toBe("SIGKILL");
      const sent = world.mails();
      // With or without a restore: at most one mail, and never a silent second one.
      if (nth === 1) await world.lazarus(`restore m1 ${world.checkpoint}`);
      const { exit } = await world.call([...words, ...command]);
      expect(world.mails()).toBeLessThanOrEqual(nth === 1 ? 1 : sent + 1);
      expect([0, 4]).toContain(exit);
      if (exit === 0) expect(world.mails()).toBe(1);
      rmSync(outbox, { force: true });
    }
  });
});
