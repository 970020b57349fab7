// What a checkpoint records about flows, how much it stores, and the prune after it.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { formatExact } from "../../src/flow/document/python-json.ts";
import { newDocument } from "../../src/flow/document/transition.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { createLab, type Lab, vaultFiles } from "./lab.ts";

const bytesOf = (lab: Lab) =>
  [...vaultFiles(lab.context.vault.root).values()].reduce((sum, size) => sum + size, 0);

describe("positions of flows", () => {
  const writeFlow = (lab: Lab, step: string) => {
    const directory = join(lab.worktree, "memory/checkpoints");
    fs.mkdirSync(directory, { recursive: true });
    const document = newDocument({ workflow: "letters", agent: "anna", idempotency: "letters", step }, 0);
    fs.writeFileSync(join(directory, "letters.json"), formatExact(document));
  };

  it("are in the checkpoint, and a restore reports how they change", async () => {
    using lab = createLab();
    writeFlow(lab, "fetch");
    const { checkpoint, ref } = await lab.checkpoint();
    expect(checkpoint.metadata.flows).toMatchObject([{ workflowId: "letters", currentStep: "fetch" }]);
    writeFlow(lab, "send-them-all");
    const { moves } = await restoreCell(lab.context, { checkpoint: ref.id });
    expect(moves.join("\n")).toContain("letters");
    expect(moves.join("\n")).toContain("fetch");
    // Restoring a part of the cell does not change flows.
    const part = await restoreCell(lab.context, { checkpoint: ref.id, paths: ["worktree/memory"] });
    expect(part.moves).toEqual([]);
  });
});

describe("the size of a checkpoint", () => {
  it("grows with the changes, not with the cell", async () => {
    const added: number[] = [];
    for (const files of [50, 3000]) {
      using lab = createLab();
      for (let i = 0; i < files; i += 1) fs.writeFileSync(join(lab.worktree, `f${i}`), `file ${i}\n`);
      await lab.checkpoint();
      const before = bytesOf(lab);
      fs.writeFileSync(join(lab.worktree, "f7"), "changed, and of another length\n");
      await lab.checkpoint();
      added.push(bytesOf(lab) - before);
    }
    expect(added[0]).toBeLessThan(4000);
    expect(Math.abs(added[1]! - added[0]!)).toBeLessThan(200);
  });
});

describe("the configured retention policy", () => {
  it("is applied after each checkpoint, and removes the git refs of pruned checkpoints", async () => {
    const keepTwo = {
      keep_last: 2,
      keep_hourly: 0,
      keep_daily: 0,
      keep_weekly: 0,
      keep_within_seconds: 0,
    };
    using lab = createLab({ document: { retention: keepTwo } });
    execFileSync("git", ["init", "-q", lab.worktree]);
    const refs = () =>
      execFileSync("git", [
        "-C",
        lab.worktree,
        "for-each-ref",
        "--format=%(refname:lstrip=3)",
        "refs/lazarus",
      ])
        .toString()
        .trim()
        .split("\n")
        .sort();
    const ids: string[] = [];
    for (let round = 0; round < 4; round += 1) {
      fs.writeFileSync(join(lab.worktree, "file"), `round ${round}`);
      const { ref, pruned } = await lab.checkpoint();
      ids.push(ref.id);
      expect(pruned).toEqual(round < 2 ? [] : [ids[round - 2]]);
    }
    expect(lab.context.vault.list().map(({ id }) => id)).toEqual(ids.slice(2));
    expect(refs()).toEqual(ids.slice(2).sort());
    for (const ref of lab.context.vault.list())
      expect(readCheckpoint(lab.context.vault, ref).layers).toBeDefined();
    await lab.verify();
    const kept = lab.with({ document: { retention: { ...keepTwo, auto: false } } });
    fs.writeFileSync(join(lab.worktree, "file"), "more");
    expect((await kept.checkpoint()).pruned).toEqual([]);
    expect(lab.context.vault.list()).toHaveLength(3);
  });
});
