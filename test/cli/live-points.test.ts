// Live points in the list of checkpoints: folded, unless they have a message or mark.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { CheckpointOptions } from "../../src/snapshot/operations/checkpoint.ts";
import { blobFile } from "../snapshot/hand-made.ts";
import { createLab } from "../snapshot/lab.ts";
import { createWorld, type World } from "./hermetic.ts";

const HOUR_MS = 3_600_000;

let world: World;
let ids: string[];

async function runOk(...words: string[]): Promise<string> {
  const { exit, stdout, stderr } = await world.call(words);
  expect(exit, `lazarus ${words.join(" ")}: ${stderr}`).toBe(0);
  return stdout;
}

/** The lines below the head: the index of the checkpoint that a line lists, or its text. */
async function list(...options: string[]): Promise<(number | string)[]> {
  const [, ...lines] = (await runOk("checkpoints", "m", ...options)).trimEnd().split("\n");
  return lines.map((line) => {
    const index = ids.indexOf(line.split(" ")[0]!);
    return index < 0 ? line.replaceAll(/(\d+h) \d+m/g, "$1") : index;
  });
}

const labAt = (hoursAgo: number) =>
  createLab({ home: world.home, mission: "m", aheadMs: -hoursAgo * HOUR_MS });

async function take(hoursAgo: number, options: CheckpointOptions): Promise<void> {
  const lab = labAt(hoursAgo);
  writeFileSync(join(lab.worktree, "notes.txt"), `${hoursAgo} hours ago\n`);
  ids.push((await lab.checkpoint(options)).ref.id);
}

beforeAll(async () => {
  world = createWorld();
  await runOk("init", "m");
  ids = [];
  await take(20, { reason: "baseline" });
  for (const hoursAgo of [19, 18, 17]) await take(hoursAgo, { reason: "live" });
  await take(16, { reason: "manual" });
  await take(15, { reason: "live" });
  await take(14, { reason: "manual" });
  for (const hoursAgo of [13, 12]) await take(hoursAgo, { reason: "live" });
  await take(11, { reason: "live", message: "the tests pass" });
  for (const hoursAgo of [10, 9, 8]) await take(hoursAgo, { reason: "live" });
});
afterAll(() => world[Symbol.dispose]());

describe("import of a copied vault", () => {
  it("takes its newest point, live or not, or the one that is named", async () => {
    const { root } = labAt(0).context.vault;
    await runOk("import", root, "--mission", "newest");
    expect(await runOk("cat", "newest", "worktree/notes.txt")).toBe("8 hours ago\n");
    await runOk("import", `${root}:${ids[5]}`, "--mission", "named");
    expect(await runOk("cat", "named", "worktree/notes.txt")).toBe("15 hours ago\n");
    const { exit, stderr } = await world.call(["import", `${root}:nothing`, "--mission", "none"]);
    expect([exit, stderr]).toEqual([6, expect.stringContaining(`it has: `)]);
  });
});

describe("live points in the list of checkpoints", () => {
  it("are folded into one line, but not a single one, one with a message, or the newest", async () => {
    expect(await list()).toEqual([
      0,
      "+3 live points between 19h and 17h ago",
      4,
      5,
      6,
      "+2 live points between 13h and 12h ago",
      9,
      "+2 live points between 10h and 9h ago",
      12,
    ]);
    expect(await list("-n", "2")).toEqual([11, 12]);
    expect(await list("-n", "3")).toEqual(["+2 live points between 10h and 9h ago", 12]);
  });

  it("are dim on a terminal", () => {
    const env = { NO_COLOR: undefined, FORCE_COLOR: "1" };
    const { stdout } = world.run(["checkpoints", "m"], { env });
    expect(stdout).toMatch(/^\u001b\[2m\+3 live points between .* ago\u001b\[22m$/m);
  });

  it("are all listed with --all and in JSON", async () => {
    expect(await list("--all")).toEqual(ids.map((_, i) => i));
    expect(await list("--all", "-n", "2")).toEqual([11, 12]);
    const whole = await runOk("checkpoints", "m", "--json");
    const { checkpoints } = JSON.parse(whole) as { checkpoints: { checkpoint_id: string; reason: string }[] };
    expect(checkpoints.map(({ checkpoint_id }) => checkpoint_id)).toEqual(ids);
    expect(checkpoints[1]).toMatchObject({ reason: "live", message: null, damaged: false });
    expect(await runOk("checkpoints", "m", "--all", "--json")).toBe(whole);
  });

  it("are listed when they are pinned or damaged", async () => {
    await runOk("pin", "m", ids[2]!);
    expect((await list()).slice(0, 5)).toEqual([0, 1, 2, 3, 4]);
    await runOk("unpin", "m", ids[2]!);
    const { context } = labAt(0);
    const { manifest } = context.vault.list()[7]!;
    writeFileSync(blobFile(context, manifest), "garbage");
    // The points after it are records on top of it.
    expect((await list()).slice(5)).toEqual([7, 8, 9, 10, 11, 12]);
  });
});

describe("checkpoint --reason", () => {
  it("does not offer live", async () => {
    const { exit, stderr } = await world.call(["checkpoint", "m", "--reason", "live"]);
    expect(exit).toBe(2);
    expect(stderr).toContain("crash, scheduled, pre-restore,");
  });
});
