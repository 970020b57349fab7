// Checkpoints of a cell that changes during the capture, and next to other operations on the same vault or repository.
import { execFileSync, spawn } from "node:child_process";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { join } from "node:path";
import { setTimeout } from "node:timers/promises";
import { describe, expect, it } from "vitest";
import { prune } from "../../src/snapshot/operations/prune.ts";
import { isRoot } from "../plain-user.ts";
import { startChild } from "./child.ts";
import { createLab, type Lab, removeTree, vaultFiles } from "./lab.ts";
import { listTree } from "./list-tree.ts";

const noPruning = { document: { retention: { auto: false } } };

describe("change detection", () => {
  it("an unchanged cell adds only an index entry to the vault", async () => {
    using lab = createLab(noPruning);
    for (let i = 0; i < 30; i += 1) fs.writeFileSync(join(lab.worktree, `f${i}`), `content ${i}`);
    await lab.checkpoint();
    await lab.checkpoint();
    const before = vaultFiles(lab.context.vault.root);
    const { outcome } = await lab.checkpoint();
    expect(outcome).toBe("unchanged");
    const after = vaultFiles(lab.context.vault.root);
    const changed = [...after].filter(([name, size]) => before.get(name) !== size).map(([name]) => name);
    expect(changed).toEqual(["index.json"]);
  });

  it("a file rewritten with the same size in the millisecond of the scan is stored again", async () => {
    using lab = createLab({ aheadMs: 0 });
    const file = join(lab.worktree, "f");
    for (let i = 0; i < 10; i += 1) {
      const letters = [String.fromCharCode(97 + i), String.fromCharCode(65 + i)] as const;
      fs.writeFileSync(file, letters[0]);
      const { mtime, atime } = fs.statSync(file);
      const saving = lab.checkpoint();
      fs.writeFileSync(file, letters[0]);
      fs.utimesSync(file, atime, mtime);
      await saving;
      fs.writeFileSync(file, letters[1]);
      fs.utimesSync(file, atime, mtime);
      await lab.checkpoint();
      expect(lab.text("worktree/f")).toBe(letters[1]);
    }
  });

  it("a file rewritten and touched back to its old time is stored again", async () => {
    using lab = createLab();
    const file = join(lab.worktree, "f");
    fs.writeFileSync(file, "before");
    execFileSync("touch", ["-d", "2001-02-03 04:05:06", file]);
    await lab.checkpoint();
    fs.writeFileSync(file, "after!");
    execFileSync("touch", ["-d", "2001-02-03 04:05:06", file]);
    expect((await lab.checkpoint()).outcome).toBe("captured");
    expect(lab.text("worktree/f")).toBe("after!");
  });

  it("a file of which only the ctime changed is not stored again", async () => {
    using lab = createLab();
    const file = join(lab.worktree, "f");
    fs.writeFileSync(file, "x");
    await lab.checkpoint();
    fs.chmodSync(file, 0o600);
    fs.chmodSync(file, 0o644);
    expect((await lab.checkpoint()).outcome).toBe("unchanged");
  });
});

describe("a file that is written while it is read", () => {
  for (const size of [60_000, 5 << 20]) {
    it(`is consistent when each version is renamed into place (${size} bytes)`, async () => {
      using lab = createLab({ ...noPruning, aheadMs: 0 });
      const file = join(lab.worktree, "busy");
      await using _writer = await startChild("busy-writer.ts", "replace", file, String(size));
      for (let i = 0; i < (size > 1 << 20 ? 5 : 20); i += 1) {
        const { flaws, checkpoint } = await lab.checkpoint();
        const content = lab.listing().has("worktree/busy") ? lab.text("worktree/busy") : "";
        const flagged = flaws.some(({ path, kind }) => path === "worktree/busy" && kind === "torn");
        expect(content === "" || content === content[0]!.repeat(size) || flagged).toBe(true);
        expect(flaws.filter(({ path }) => !/busy(\.tmp)?$/.test(path))).toEqual([]);
        expect(checkpoint.metadata.flaws).toEqual(flaws);
      }
      await lab.verify();
    });

    // A single write that the scheduler interrupts may not show in any stat. So the guarantee for files that are rewritten
    // in place is: flagged when the stat shows it, and correct in the next checkpoint in any case.
    it(`in place is correct in the next checkpoint (${size} bytes)`, async () => {
      using lab = createLab({ ...noPruning, aheadMs: 0 });
      const file = join(lab.worktree, "busy");
      for (let i = 0; i < 2; i += 1) {
        {
          await using _writer = await startChild("busy-writer.ts", "rewrite", file, String(size));
          for (let j = 0; j < 3; j += 1) {
            const { flaws } = await lab.checkpoint();
            expect(flaws.every(({ path, kind }) => path === "worktree/busy" && kind === "torn")).toBe(true);
          }
        }
        expect((await lab.checkpoint()).flaws).toEqual([]);
        expect(lab.text("worktree/busy") === fs.readFileSync(file, "latin1")).toBe(true);
      }
      await lab.verify();
    });

    it(`in place is flagged as torn when its stat shows it (${size} bytes)`, async () => {
      using lab = createLab({ ...noPruning, aheadMs: 0 });
      const file = join(lab.worktree, "busy");
      fs.writeFileSync(file, "x".repeat(size));
      let writes = 0;
      const { flaws } = await afterEachRead(file, lab.checkpoint, () => {
        const fd = fs.openSync(file, "r+");
        fs.writeSync(fd, String(writes++ % 10), size / 2);
        fs.closeSync(fd);
      });
      expect(flaws).toEqual([
        { path: "worktree/busy", kind: "torn", reason: "it was written while being read" },
      ]);
      expect((await lab.checkpoint()).flaws).toEqual([]);
      expect(lab.text("worktree/busy") === fs.readFileSync(file, "latin1")).toBe(true);
    });
  }

  it("is captured up to the size it had, when it grows", async () => {
    using lab = createLab(noPruning);
    await using _writer = await startChild("busy-writer.ts", "append", join(lab.worktree, "log"), "1000");
    for (let i = 0; i < 10; i += 1) {
      await lab.checkpoint();
      expect(lab.text("worktree/log")).toMatch(/^a+\0*$/);
    }
    await lab.verify();
  });

  it("may vanish, small or large, alone or with its directory", async () => {
    using lab = createLab({ ...noPruning, aheadMs: 0 });
    await using _small = await startChild("busy-writer.ts", "vanish", join(lab.worktree, "small"), "500");
    await using _large = await startChild(
      "busy-writer.ts",
      "vanish",
      join(lab.worktree, "large"),
      String(5 << 20),
    );
    await using _build = await startChild("busy-writer.ts", "rebuild", join(lab.worktree, "build"));
    for (let i = 0; i < 12; i += 1) {
      const { ref } = await lab.checkpoint();
      const listing = lab.listing(ref.id);
      for (const path of listing.keys()) {
        const parent = path.slice(0, Math.max(0, path.lastIndexOf("/"))) || ".";
        expect(listing.get(parent)?.type, `${path} has no parent`).toBe("directory");
      }
    }
    await lab.verify();
    const restored = await lab.restored(lab.context.vault.list().at(-1)!.id);
    expect(fs.existsSync(join(restored, "worktree"))).toBe(true);
  });

  it("leaves no stale names when its directory is removed during the capture", async () => {
    using lab = createLab(noPruning);
    const build = join(lab.worktree, "build");
    {
      await using _build = await startChild("busy-writer.ts", "rebuild", build);
      for (let i = 0; i < 15; i += 1) await lab.checkpoint();
    }
    fs.rmSync(build, { recursive: true, force: true });
    const { ref } = await lab.checkpoint();
    expect([...lab.listing(ref.id).keys()].filter((path) => path.includes("build"))).toEqual([]);
    expect(listTree(await lab.restored(ref.id))).toEqual(listTree(lab.cell));
  });
});

describe("special paths", () => {
  it("sockets and devices are skipped every time; a FIFO is captured without blocking", async () => {
    using lab = createLab();
    const bind = "import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])";
    execFileSync("python3", ["-c", bind, join(lab.worktree, "s")]);
    execFileSync("mkfifo", [join(lab.worktree, "p")]);
    const wanted = [{ path: "worktree/s", kind: "skipped", reason: "a socket" }];
    if (isRoot) {
      execFileSync("mknod", [join(lab.worktree, "null"), "c", "1", "3"]);
      wanted.unshift({ path: "worktree/null", kind: "skipped", reason: "a character device" });
    }
    for (const outcome of ["captured", "unchanged", "unchanged"]) {
      const result = await lab.checkpoint();
      expect(result.outcome).toBe(outcome);
      expect([...result.flaws].sort((a, b) => (a.path < b.path ? -1 : 1))).toEqual(wanted);
    }
    expect(lab.listing().get("worktree/p")?.type).toBe("fifo");
    expect(lab.listing().has("worktree/s")).toBe(false);
  });

  it("paths are captured once they are no longer excluded", async () => {
    using lab = createLab({ document: { snapshot: { exclude: ["cache/"] } } });
    fs.mkdirSync(join(lab.worktree, "cache"));
    fs.writeFileSync(join(lab.worktree, "cache/x"), "x");
    await lab.checkpoint();
    await lab.checkpoint();
    expect(lab.listing().has("worktree/cache")).toBe(false);
    const all = lab.with({ document: {} });
    await all.checkpoint();
    expect(all.text("worktree/cache/x")).toBe("x");
    await lab.checkpoint();
    expect(lab.listing().has("worktree/cache")).toBe(false);
  });

  it("hard links survive the removal of their first name", async () => {
    using lab = createLab();
    const content = "x".repeat(5 << 20);
    for (const name of ["a-large", "a-small"]) {
      fs.writeFileSync(join(lab.worktree, name), name === "a-large" ? content : "small");
      for (const other of ["b", "c"])
        fs.linkSync(join(lab.worktree, name), join(lab.worktree, `${other}-${name}`));
    }
    await lab.checkpoint();
    const less = lab.with({ document: { snapshot: { exclude: ["a-*"] } } });
    for (let i = 0; i < 12; i += 1) {
      fs.writeFileSync(join(lab.worktree, `more${i}`), Buffer.alloc(2000, i));
      await less.checkpoint();
    }
    expect(less.text("worktree/b-a-large") === content).toBe(true);
    expect(less.text("worktree/c-a-small")).toBe("small");
    await less.verify();
  });
});

describe("concurrent operations", () => {
  it("two checkpoints of one cell both succeed, one after the other", async () => {
    using lab = createLab(noPruning);
    const other = lab.with({});
    fs.writeFileSync(join(lab.worktree, "f"), "x");
    const results = await Promise.all([
      lab.checkpoint(),
      other.checkpoint(),
      lab.checkpoint(),
      other.checkpoint(),
    ]);
    expect(
      lab.context.vault
        .list()
        .map(({ id }) => id)
        .sort(),
    ).toEqual(results.map(({ ref }) => ref.id).sort());
    expect(results.filter(({ outcome }) => outcome === "captured")).toHaveLength(1);
    await lab.verify();
  });

  it("two concurrent missions do not affect each other", async () => {
    using lab = createLab(noPruning);
    const other = createLab({ ...noPruning, mission: "other", home: lab.home });
    fs.mkdirSync(other.worktree, { recursive: true });
    fs.writeFileSync(join(lab.worktree, "mine"), "x".repeat(9 << 20));
    fs.writeFileSync(join(other.worktree, "theirs"), "x".repeat(9 << 20));
    await Promise.all([lab.checkpoint(), other.checkpoint()]);
    expect([lab.listing().has("worktree/mine"), other.listing().has("worktree/mine")]).toEqual([true, false]);
    await lab.verify();
    await other.verify();
  });

  it("a prune removes nothing that a checkpoint needs", async () => {
    using lab = createLab(noPruning);
    const policy = {
      keep_last: 3,
      keep_hourly: 0,
      keep_daily: 0,
      keep_weekly: 0,
      keep_within_seconds: 0,
      max_bytes: 0,
    };
    let saving = true;
    const pruning = (async () => {
      while (saving) {
        await prune(lab.with({}).context, { policy });
        await setTimeout(10);
      }
    })();
    for (let i = 0; i < 20; i += 1) {
      fs.writeFileSync(join(lab.worktree, `f${i % 5}`), `content ${i}`);
      await lab.checkpoint();
    }
    saving = false;
    await pruning;
    await lab.verify();
    expect(lab.text("worktree/f4")).toBe("content 19");
  });

  it("the agent's commits and git gc do not break checkpoints", async () => {
    using lab = createLab(noPruning);
    execFileSync("git", ["init", "-q", lab.worktree]);
    fs.writeFileSync(join(lab.worktree, "f"), "0");
    const script = `i=0; while :; do i=$((i+1)); echo $i > f; git add -A; git -c user.name=a -c user.email=a commit -qm $i; git gc -q --prune=now; done`;
    const agent = spawn("sh", ["-c", script], { cwd: lab.worktree, stdio: "ignore", detached: true });
    const ended = new Promise((resolve) => agent.on("close", resolve));
    try {
      for (let i = 0; i < 6; i += 1) {
        const { checkpoint, flaws } = await lab.checkpoint();
        const { git } = checkpoint.metadata;
        expect(["committed", "unchanged", "degraded"]).toContain(git.status);
        if (git.status === "degraded") expect(flaws.some(({ path }) => path === "worktree")).toBe(true);
      }
    } finally {
      process.kill(-agent.pid!, "SIGKILL");
      await ended;
    }
    fs.rmSync(join(lab.worktree, ".git/index.lock"), { force: true });
    await lab.verify();
    const last = await lab.checkpoint();
    expect(
      isTreeComplete(lab, last.checkpoint.metadata.git.commit),
      last.checkpoint.metadata.git.note ?? "",
    ).toBe(true);
    removeTree(join(lab.worktree, ".git"));
  });
});

/** Runs `use`, and calls `act` after every read of the file. */
async function afterEachRead<T>(file: string, use: () => Promise<T>, act: () => void): Promise<T> {
  const original = fs.readSync;
  const { ino } = fs.statSync(file);
  fs.readSync = ((fd: number, ...rest: unknown[]) => {
    const count = (original as (...args: unknown[]) => number)(fd, ...rest);
    if (fs.fstatSync(fd).ino === ino) act();
    return count;
  }) as typeof fs.readSync;
  syncBuiltinESMExports();
  try {
    return await use();
  } finally {
    fs.readSync = original;
    syncBuiltinESMExports();
  }
}

function isTreeComplete(lab: Lab, commit: string | null): boolean {
  if (commit === null) return false;
  execFileSync("git", ["-C", lab.worktree, "rev-list", "--objects", `${commit}^{tree}`], { stdio: "ignore" });
  return true;
}
