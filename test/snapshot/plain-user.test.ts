// Checkpoints of an unprivileged user, who is bound by file modes. As root, each script runs in a child process as nobody.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { giveToPlainUser, plainCheckout, plainNode, plainUser } from "../plain-user.ts";
import { removeTree } from "./lab.ts";

let home: string;
beforeEach(() => {
  home = fs.mkdtempSync(join(tmpdir(), "lazarus-user-"));
  giveToPlainUser(home);
});
afterEach(() => removeTree(home));

/** Runs `body` with `world`, `fs` and the operations in scope, and returns its result. */
function asPlainUser(body: string): unknown {
  const script = `
    const fs = await import("node:fs");
    const { createWorld, openMission, recordTree, differences } = await import("./test/snapshot/restore-world.ts");
    const { restoreCell } = await import("./src/snapshot/operations/restore.ts");
    const { restoreTo } = await import("./src/snapshot/operations/restore-into.ts");
    const { undoRestore } = await import("./src/snapshot/operations/undo.ts");
    const { takeCheckpoint } = await import("./src/snapshot/operations/checkpoint.ts");
    const { drill } = await import("./src/snapshot/operations/drill.ts");
    const { forkMission } = await import("./src/snapshot/operations/fork.ts");
    const world = createWorld(process.argv[1]);
    const result = await (async () => { ${body} })();
    process.stdout.write(JSON.stringify(result));`;
  const output = execFileSync(plainNode(), ["--input-type=module", "-e", script, home], {
    ...plainUser(),
    cwd: plainCheckout(),
    encoding: "utf8",
    env: { ...process.env, HOME: home },
  });
  return JSON.parse(output);
}

describe("directories that their owner may not enter", () => {
  const CLOSED = `
    world.write("worktree/go/mod/file", "then");
    for (const name of ["worktree/go/mod", "worktree/go"]) fs.chmodSync(world.path(name), 0o555);`;

  it("can be drilled repeatedly, and nothing is left next to the cell", () => {
    const result = asPlainUser(`${CLOSED}
      await world.checkpoint();
      const proofs = [];
      for (let i = 0; i < 2; i += 1) proofs.push((await drill(world.context)).differences);
      return { proofs, siblings: world.siblings() };`);
    expect(result).toEqual({ proofs: [[], []], siblings: [] });
  });

  it("are drilled even when no user may enter or read them", () => {
    const result = asPlainUser(`
      fs.mkdirSync(world.path("worktree/closed"));
      fs.chmodSync(world.path("worktree/closed"), 0);
      await world.checkpoint();
      const { differences, ref } = await drill(world.context);
      return { differences, proven: ref.provenAtMs !== null, siblings: world.siblings() };`);
    expect(result).toEqual({ differences: [], proven: true, siblings: [] });
  });

  it("are restored by plain tar from an export and from a layer", () => {
    const result = asPlainUser(`
      const { execFileSync } = await import("node:child_process");
      const { exportToFile } = await import("./src/snapshot/operations/export.ts");
      // "lib.js" and "lib-x" sort between "lib" and "lib/x" when a slash is an ordinary character.
      for (const name of ["lib/x", "lib/deep/y", "lib.js", "lib-x", "lib/deep.z", "lib/deep#"])
        world.write("worktree/" + name, name);
      for (const name of ["worktree/lib/deep", "worktree/lib"]) fs.chmodSync(world.path(name), 0o555);
      const before = recordTree(world.path("worktree"));
      const { ref, checkpoint } = await world.checkpoint();
      const archive = world.directory + "/out.tar.gz";
      await exportToFile(world.context, ref, archive);
      const layer = world.context.vault.blobPath(checkpoint.layers[0].digest);
      return [archive, layer].map((file, n) => {
        const target = world.directory + "/target" + n;
        fs.mkdirSync(target);
        execFileSync("tar", ["-xzpf", file, "-C", target], { stdio: ["ignore", "ignore", "inherit"] });
        return differences(before, recordTree(target + "/worktree"));
      });`);
    expect(result).toEqual([[], []]);
  });

  it("are made accessible for a restore, and get their modes back", () => {
    const result = asPlainUser(`
      world.write("worktree/closed/file", "then");
      fs.chmodSync(world.path("worktree/closed"), 0o500);
      const before = recordTree(world.cell);
      const { ref } = await world.checkpoint();
      fs.chmodSync(world.path("worktree/closed"), 0o700);
      world.write("worktree/closed/file", "now, longer");
      world.write("worktree/closed/more", "now");
      fs.chmodSync(world.path("worktree/closed"), 0o500);
      const { flaws } = await restoreCell(world.context, { checkpoint: ref.id });
      return { flaws, differences: differences(before, recordTree(world.cell)) };`);
    expect(result).toEqual({ flaws: [], differences: [] });
  });

  it("do not prevent the cleanup after a killed fork, restore or drill", () => {
    const result = asPlainUser(`${CLOSED}
      await world.checkpoint();
      const missions = world.cell.slice(0, world.cell.lastIndexOf("/"));
      for (const name of ["fork-other", "restore-m", "drill-m"]) {
        fs.cpSync(world.cell, missions + "/.lazarus-" + name + "/cell", { recursive: true });
        fs.chmodSync(missions + "/.lazarus-" + name + "/cell/worktree/go/mod", 0o555);
      }
      await forkMission(world.context, openMission(world.directory, "other"), {});
      await drill(world.context);
      return world.siblings();`);
    // The effect history of the fork stays.
    expect(result).toEqual([".lazarus-effects", "other"]);
  });
});

it("restores attributes of files that their owner may not write", (context) => {
  const result = asPlainUser(`
    const { posixSupport } = await import("./src/platform/posix.ts");
    const { posix } = posixSupport();
    const names = ["worktree/file", "worktree/kept", "worktree/closed"];
    const label = (value) => {
      for (const name of names) {
        fs.chmodSync(world.path(name), 0o700);
        posix.setXattr(Buffer.from(world.path(name)), "user.label", Buffer.from(value));
        fs.chmodSync(world.path(name), 0o500);
      }
    };
    const labels = (root) =>
      names.map((name) => String(posix.listXattrs(Buffer.from(root + "/" + name)).map(({ value }) => value)));
    world.write("worktree/file", "then");
    world.write("worktree/kept", "then");
    fs.mkdirSync(world.path("worktree/closed"));
    try { label("then"); } catch (error) { return error.code; }
    const { ref } = await world.checkpoint();
    fs.rmSync(world.path("worktree/file"));
    world.write("worktree/file", "now");
    label("now");
    const before = labels(world.cell);
    const { flaws } = await restoreCell(world.context, { checkpoint: ref.id });
    const directory = world.directory + "/restored";
    const elsewhere = await restoreTo(world.context, { checkpoint: ref.id, directory });
    return { before, flaws, after: labels(world.cell), restored: labels(directory), lost: elsewhere.flaws };`);
  if (result === "ENOTSUP" || result === "EOPNOTSUPP")
    context.skip("this file system has no user attributes");
  const then = ["then", "then", "then"];
  expect(result).toEqual({ before: ["now", "now", "now"], flaws: [], after: then, restored: then, lost: [] });
});

describe("files that a plain user cannot read", () => {
  it("are not removed by a restore of a checkpoint that could not save them", () => {
    const result = asPlainUser(`
      world.write("worktree/file", "x");
      world.write("worktree/dark/inside", "x");
      const { ref } = await world.checkpoint();
      for (const name of ["worktree/file", "worktree/dark"]) fs.chmodSync(world.path(name), 0);
      world.write("worktree/other", "x");
      await restoreCell(world.context, { checkpoint: ref.id });
      const { changes } = await undoRestore(world.context);
      const there = fs.readdirSync(world.path("worktree"));
      fs.chmodSync(world.path("worktree/dark"), 0o700);
      return { ...changes, there, inside: fs.readdirSync(world.path("worktree/dark")) };`);
    const reason = "the checkpoint could not save this path";
    expect(result).toMatchObject({
      added: ["worktree/other"],
      removed: [],
      kept: [
        { path: "worktree/dark/inside", reason },
        { path: "worktree/file", reason },
      ],
      there: ["dark", "file", "other"],
      inside: ["inside"],
    });
  });

  it("are skipped until they become readable", () => {
    const result = asPlainUser(`
      world.write("worktree/open", "x");
      fs.chmodSync(world.write("worktree/closed", "x"), 0);
      fs.mkdirSync(world.path("worktree/dark"), { mode: 0 });
      const results = [await world.checkpoint(), await world.checkpoint()];
      fs.chmodSync(world.path("worktree/closed"), 0o644);
      fs.chmodSync(world.path("worktree/dark"), 0o755);
      results.push(await world.checkpoint());
      return results.map(({ flaws, outcome, checkpoint }) =>
        ({ flaws: flaws.sort((a, b) => (a.path < b.path ? -1 : 1)), outcome, files: checkpoint.metadata.counts.files }));`);
    const flaws = [
      { path: "worktree/closed", kind: "skipped", reason: "cannot be read (EACCES)" },
      {
        path: "worktree/dark",
        kind: "skipped",
        reason: "the directory and its contents cannot be read (EACCES)",
      },
    ];
    expect(result).toMatchObject([
      { flaws, files: 5 },
      { flaws, files: 5, outcome: "unchanged" },
      { flaws: [], files: 6, outcome: "captured" },
    ]);
  });
});

it("a worktree that its owner may not enter becomes a flaw", () => {
  const result = asPlainUser(`
    world.write("worktree/file", "x");
    fs.chmodSync(world.path("worktree"), 0);
    const { outcome, flaws } = await world.checkpoint();
    return { outcome, flaws };`);
  const reason = "the directory and its contents cannot be read (EACCES)";
  expect(result).toEqual({ outcome: "captured", flaws: [{ path: "worktree", kind: "skipped", reason }] });
});

it("reports no change for the same unreadable files in any order", () => {
  const result = asPlainUser(`
    for (const name of ["worktree/a/f", "worktree/b"]) {
      world.write(name, "closed");
      fs.chmodSync(world.path(name), 0);
    }
    const first = await takeCheckpoint(world.context, { reason: "manual" });
    const second = await world.checkpoint();
    return { flaws: first.flaws.map(({ path }) => path).sort(), outcome: second.outcome };`);
  expect(result).toEqual({ flaws: ["worktree/a/f", "worktree/b"], outcome: "unchanged" });
});

describe("owners that only root can set", () => {
  it("are flaws of the restored files, links and directories", () => {
    const result = asPlainUser(`
      const { detectCapabilities, makeFile, makeSpecial, setMetadata } = await import("./src/snapshot/restore/make-path.ts");
      const capabilities = detectCapabilities();
      const entry = (type, path) => ({
        path, type, mode: 0o600, uid: 0, gid: 0, mtimeSec: 1, mtimeNs: 0, size: 0, sha256: "", target: "x",
      });
      const flaws = [];
      makeFile(world.path("f"), entry("file", "f"), { read() {} }, capabilities, flaws);
      makeSpecial(world.path("l"), entry("symlink", "l"), capabilities, flaws);
      fs.mkdirSync(world.path("d"));
      setMetadata(world.path("d"), entry("directory", "d"), capabilities, flaws);
      const { uid, gid } = fs.statSync(world.path("f"));
      setMetadata(world.path("f"), { ...entry("file", "mine"), uid, gid }, capabilities, flaws);
      return flaws;`);
    const reason = "its owner 0:0 could not be restored (EPERM)";
    expect(result).toEqual(["f", "l", "d"].map((path) => ({ path, kind: "degraded", reason })));
  });
});
