// The git commit of a checkpoint in unusual repositories: it holds what `git add -A` would add, and nothing that belongs
// to the user is changed.
import { type ExecFileSyncOptions, execFileSync, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { describe, expect, it, onTestFinished, vi } from "vitest";
import { commitWorktree } from "../../src/snapshot/git/commit.ts";
import type { CheckpointResult } from "../../src/snapshot/operations/checkpoint.ts";
import { createRandom } from "../../src/testing/index.ts";
import { isRoot } from "../plain-user.ts";
import { SEED } from "../seed.ts";
import { createLab, type Lab, type LabOptions } from "./lab.ts";

interface Repository extends Lab {
  git(...args: string[]): string;
  write(path: string, content: string): void;
  /** Everything that belongs to the user: HEAD, refs, reflogs, index bytes, stash, hooks, state of rebase and merge. */
  userState(): Record<string, string>;
  /** The tree that `git add -A` creates, using a separate index. */
  wantedTree(...without: string[]): string;
}

function createRepository(options: LabOptions = {}, init = true): Repository {
  const lab = createLab(options);
  const run = (args: readonly string[], extra: ExecFileSyncOptions = {}) =>
    execFileSync("git", args, {
      cwd: lab.worktree,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      ...extra,
      env: {
        PATH: process.env.PATH,
        HOME: lab.directory,
        GIT_AUTHOR_NAME: "user",
        GIT_AUTHOR_EMAIL: "u@u",
        GIT_COMMITTER_NAME: "user",
        GIT_COMMITTER_EMAIL: "u@u",
        GIT_CONFIG_COUNT: "2",
        GIT_CONFIG_KEY_0: "protocol.file.allow",
        GIT_CONFIG_VALUE_0: "always",
        // Since git 2.47 a commit leaves a maintenance process behind, which holds a lock file for a while.
        GIT_CONFIG_KEY_1: "maintenance.auto",
        GIT_CONFIG_VALUE_1: "false",
        ...extra.env,
      },
    }).toString();
  const git = (...args: string[]) => run(args).trim();
  const write = (path: string, content: string) => {
    fs.mkdirSync(join(lab.worktree, path, ".."), { recursive: true });
    fs.writeFileSync(join(lab.worktree, path), content);
  };
  if (init) {
    git("init", "-q", "-b", "main");
    write("tracked.txt", "one\n");
    write("dir/also.txt", "two\n");
    git("add", "-A");
    git("commit", "-qm", "first");
  }
  return {
    ...lab,
    git,
    write,
    userState() {
      const directories = git(
        "rev-parse",
        "--path-format=absolute",
        "--absolute-git-dir",
        "--git-common-dir",
      );
      const found: Record<string, string> = {
        refs: spawnSync("git", ["for-each-ref", "--format=%(refname) %(objectname)"], {
          cwd: lab.worktree,
          encoding: "utf8",
        })
          .stdout.split("\n")
          .filter((line) => !line.startsWith("refs/lazarus/checkpoints/"))
          .join("\n"),
      };
      for (const root of new Set(directories.split("\n"))) {
        for (const entry of fs.readdirSync(root, { recursive: true, withFileTypes: true })) {
          const path = join(entry.parentPath, entry.name);
          const name = path.slice(root.length + 1);
          if (!entry.isFile() || /^(objects|refs|packed-refs)/.test(name)) continue;
          const { mtimeMs } = fs.statSync(path);
          found[path] = `${createHash("sha256").update(fs.readFileSync(path)).digest("hex")} ${mtimeMs}`;
        }
      }
      return found;
    },
    wantedTree(...without) {
      const index = join(lab.directory, `wanted-${Math.random()}`);
      const own = git("rev-parse", "--path-format=absolute", "--git-path", "index");
      if (fs.existsSync(own)) fs.copyFileSync(own, index);
      // An old time, so that git trusts no stat and hashes everything.
      if (fs.existsSync(own)) fs.utimesSync(index, 1, 1);
      const env = { GIT_INDEX_FILE: index };
      run(["add", "-A", "--", ".", ...without.map((path) => `:(exclude)${path}`)], { env });
      return run(["write-tree"], { env }).trim();
    },
  };
}

/** Takes a checkpoint and checks that the user's state is unchanged and that the tree and the ref are right. */
async function checkCommit(lab: Repository, ...without: string[]): Promise<CheckpointResult> {
  const wanted = lab.wantedTree(...without);
  const before = lab.userState();
  const result = await lab.checkpoint();
  expect(lab.userState()).toEqual(before);
  const { git } = result.checkpoint.metadata;
  expect(git.status, git.note ?? "").toMatch(/^(committed|unchanged)$/);
  expect(lab.git("rev-parse", `${git.commit}^{tree}`, git.ref!).split("\n")).toEqual([wanted, git.commit]);
  // test/snapshot/git-outside.test.ts
  expect(result.flaws.filter(({ path }) => !path.endsWith("/alternates"))).toEqual([]);
  return result;
}

describe("the commit of a checkpoint", () => {
  it("holds tracked and untracked files, not ignored ones, on top of HEAD", async () => {
    using lab = createRepository();
    lab.write(".gitignore", "ignored/\n*.log\n");
    lab.write("ignored/x", "x");
    lab.write("a.log", "x");
    lab.write("new file", "new");
    lab.write("tracked.txt", "changed\n");
    fs.rmSync(join(lab.worktree, "dir/also.txt"));
    const { checkpoint } = await checkCommit(lab);
    const { head, branch, commit } = checkpoint.metadata.git;
    expect({ head, branch }).toEqual({ head: lab.git("rev-parse", "HEAD"), branch: "main" });
    expect(lab.git("rev-parse", `${commit}^`)).toBe(head);
    expect(lab.git("ls-tree", "-r", "--name-only", commit!).split("\n")).toEqual([
      ".gitignore",
      "new file",
      "tracked.txt",
    ]);
    expect(lab.git("log", "-1", "--format=%an <%ae>", commit!)).toBe("Lazarus <lazarus@localhost>");
  });

  it("of an unborn branch has no parent", async () => {
    using lab = createRepository({}, false);
    lab.git("init", "-q", "-b", "main");
    lab.write("a", "a");
    const { checkpoint } = await checkCommit(lab);
    expect(checkpoint.metadata.git).toMatchObject({ head: null, branch: "main" });
    expect(lab.git("rev-list", "--count", checkpoint.metadata.git.commit!)).toBe("1");
  });

  it("works with a detached HEAD, a stash, staged changes and intent-to-add", async () => {
    using lab = createRepository();
    lab.write("tracked.txt", "stashed\n");
    lab.git("stash");
    lab.git("checkout", "-q", "--detach");
    lab.write("staged.txt", "staged\n");
    lab.git("add", "staged.txt");
    lab.write("staged.txt", "edited after staging\n");
    lab.write("intended.txt", "x\n");
    lab.git("add", "-N", "intended.txt");
    const { checkpoint } = await checkCommit(lab);
    expect(checkpoint.metadata.git.branch).toBe(null);
    expect(lab.git("stash", "list")).toContain("stash@{0}");
    expect(lab.git("status", "--porcelain")).toBe("A intended.txt\nAM staged.txt");
  });

  it("works mid-merge and mid-rebase, with conflicts", async () => {
    using lab = createRepository();
    lab.git("checkout", "-qb", "other");
    lab.write("tracked.txt", "theirs\n");
    lab.git("commit", "-qam", "theirs");
    lab.git("checkout", "-q", "main");
    lab.write("tracked.txt", "ours\n");
    lab.git("commit", "-qam", "ours");
    for (const command of [
      ["merge", "other"],
      ["rebase", "other"],
    ] as const) {
      expect(() => lab.git(...command)).toThrow();
      expect(lab.git("status", "--porcelain")).toBe("UU tracked.txt");
      await checkCommit(lab);
      lab.write("during.txt", command[0]);
      await checkCommit(lab);
      expect(lab.git("status", "--porcelain")).toContain("UU tracked.txt");
      lab.git(command[0], "--abort");
      fs.rmSync(join(lab.worktree, "during.txt"));
    }
  });

  it("works in a linked worktree, and with a bare repository elsewhere", async () => {
    using lab = createRepository();
    const linked = createLab({ mission: "linked", home: lab.home });
    fs.mkdirSync(linked.cell, { recursive: true });
    lab.git("worktree", "add", "-q", "-b", "side", linked.worktree);
    fs.writeFileSync(join(linked.worktree, "only here"), "x");
    const before = lab.userState();
    const { checkpoint } = await linked.checkpoint();
    expect(lab.userState()).toEqual(before);
    expect(checkpoint.metadata.git).toMatchObject({ status: "committed", branch: "side" });
    expect(lab.git("ls-tree", "-r", "--name-only", checkpoint.metadata.git.commit!)).toContain("only here");
  });

  it("works with submodules and nested repositories, with and without commits", async () => {
    using lab = createRepository();
    const module = join(lab.directory, "module");
    execFileSync("git", ["init", "-q", module]);
    fs.writeFileSync(join(module, "m"), "m");
    execFileSync("git", ["-C", module, "add", "-A"]);
    execFileSync("git", ["-C", module, "-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "m"]);
    lab.git("submodule", "add", "-q", module, "sub");
    lab.git("clone", "-q", module, "nested");
    lab.git("init", "-q", "empty");
    lab.write("empty/file", "x");
    const { checkpoint } = await checkCommit(lab, "empty");
    expect(checkpoint.metadata.git.note).toContain("empty");
    expect([...lab.listing().keys()]).toContain("worktree/empty/file");
    // The nested repository gets a commit; then it stops being a repository.
    fs.writeFileSync(join(lab.worktree, "nested/more"), "more");
    lab.git("-C", "nested", "add", "-A");
    lab.git("-C", "nested", "-c", "user.name=x", "-c", "user.email=x", "commit", "-qm", "more");
    await checkCommit(lab, "empty");
    fs.rmSync(join(lab.worktree, "nested/.git"), { recursive: true });
    fs.rmSync(join(lab.worktree, "empty/.git"), { recursive: true });
    await checkCommit(lab);
    fs.rmSync(join(lab.worktree, "sub"), { recursive: true });
    await checkCommit(lab);
  });

  it("holds names that are not UTF-8", async () => {
    using lab = createRepository();
    const odd = Buffer.concat([Buffer.from(`${lab.worktree}/`), Buffer.from([0x66, 0xff, 0x0a, 0x20])]);
    lab.write(".gitignore", "*.hidden\n");
    await checkCommit(lab);
    fs.writeFileSync(odd, "odd");
    fs.writeFileSync(Buffer.concat([odd, Buffer.from(".hidden")]), "odd and ignored");
    lab.write("new\nline", "x");
    lab.write("sp ace", "x");
    lab.write(":(exclude)magic", "x");
    await checkCommit(lab);
    fs.rmSync(odd);
    await checkCommit(lab);
  });

  it("follows ignore rules that change between checkpoints", async () => {
    using lab = createRepository();
    lab.write("a.tmp", "x");
    await checkCommit(lab);
    lab.write(".gitignore", "*.tmp\n");
    await checkCommit(lab);
    fs.appendFileSync(join(lab.worktree, ".git/info/exclude"), "b.*\n");
    lab.write("b.txt", "x");
    await checkCommit(lab);
    lab.git("config", "core.excludesFile", join(lab.directory, "mine"));
    fs.writeFileSync(join(lab.directory, "mine"), "c.*\n");
    lab.write("c.txt", "x");
    await checkCommit(lab);
    fs.rmSync(join(lab.worktree, ".gitignore"));
    await checkCommit(lab);
    lab.write(".gitattributes", "*.txt text eol=crlf\n");
    lab.write("tracked.txt", "one\r\n");
    await checkCommit(lab);
  });

  it("is correct when the user's index is newer than a change of the same size", async () => {
    using lab = createRepository();
    for (let i = 0; i < 5; i += 1) {
      lab.write("racy.txt", `${i}aaaa\n`);
      lab.git("add", "racy.txt");
      lab.write("racy.txt", `${i}bbbb\n`);
      fs.rmSync(lab.context.cacheDirectory, { recursive: true, force: true });
      await checkCommit(lab);
    }
  });

  it("adds no commit at a live point, and all changes at the next checkpoint", async () => {
    using lab = createRepository();
    await lab.checkpoint();
    const refs = lab.git("for-each-ref", "refs/lazarus");
    lab.write("new", "x");
    const live = await lab.checkpoint({ reason: "live", git: "deferred", onlyIfChanged: true });
    expect([live.outcome, live.flaws]).toEqual(["captured", []]);
    expect(live.checkpoint.metadata.git).toMatchObject({
      status: "deferred",
      head: lab.git("rev-parse", "HEAD"),
      branch: "main",
      commit: null,
      ref: null,
    });
    expect(lab.git("for-each-ref", "refs/lazarus")).toBe(refs);
    const wanted = lab.wantedTree();
    const next = await lab.checkpoint();
    expect(next.checkpoint.metadata.git.status).toBe("committed");
    expect(lab.git("rev-parse", `${next.checkpoint.metadata.git.commit}^{tree}`)).toBe(wanted);
  });

  it("takes no live point when nothing changed since a checkpoint with a commit", async () => {
    using lab = createRepository();
    const { ref } = await lab.checkpoint();
    const live = await lab.checkpoint({ reason: "live", git: "deferred", onlyIfChanged: true });
    expect([live.outcome, live.ref.id]).toEqual(["unchanged", ref.id]);
    lab.git("commit", "-q", "--allow-empty", "-m", "second");
    const later = await lab.checkpoint({ reason: "live", git: "deferred", onlyIfChanged: true });
    expect(later.outcome).toBe("captured");
  });

  it("ignores a lock of the user's index", async () => {
    using lab = createRepository();
    const lock = join(lab.worktree, ".git/index.lock");
    fs.writeFileSync(lock, "");
    lab.write("new", "x");
    const wanted = createHash("sha256")
      .update(fs.readFileSync(join(lab.worktree, ".git/index")))
      .digest("hex");
    const result = await lab.checkpoint();
    expect(result.checkpoint.metadata.git.status).toBe("committed");
    expect(fs.existsSync(lock)).toBe(true);
    expect(
      createHash("sha256")
        .update(fs.readFileSync(join(lab.worktree, ".git/index")))
        .digest("hex"),
    ).toBe(wanted);
  });

  it("runs no hook and no file-system monitor", async () => {
    using lab = createRepository();
    const ran = join(lab.directory, "ran");
    for (const hook of [
      "pre-commit",
      "post-commit",
      "post-index-change",
      "reference-transaction",
      "post-rewrite",
    ])
      fs.writeFileSync(
        join(lab.worktree, ".git/hooks", hook),
        `#!/bin/sh\necho ${hook} >> ${ran}\nexit 1\n`,
        { mode: 0o755 },
      );
    lab.git("config", "core.fsmonitor", join(lab.worktree, ".git/hooks/pre-commit"));
    lab.write("x", "x");
    fs.rmSync(ran, { force: true });
    const { checkpoint } = await lab.checkpoint();
    expect(checkpoint.metadata.git.status).toBe("committed");
    expect(fs.existsSync(ran)).toBe(false);
  });

  it("uses no repository of a parent directory and no git variables of the caller", async () => {
    using lab = createRepository(
      {
        environment: {
          PATH: process.env.PATH,
          GIT_DIR: "/nowhere",
          GIT_INDEX_FILE: "/nowhere/index",
          GIT_WORK_TREE: "/",
        },
      },
      true,
    );
    lab.write("x", "x");
    await checkCommit(lab);
    using above = createLab();
    execFileSync("git", ["init", "-q", above.directory]);
    fs.mkdirSync(join(above.worktree, ".git"));
    const { checkpoint, flaws } = await above.checkpoint();
    expect(checkpoint.metadata.git.status).toBe("degraded");
    expect(flaws).toEqual([expect.objectContaining({ path: "worktree", kind: "degraded" })]);
    expect(fs.readdirSync(join(above.directory, ".git/refs"))).toEqual(["heads", "tags"]);
  });

  it("reports a missing or broken repository", async () => {
    using lab = createLab();
    const none = await lab.checkpoint();
    expect(none.checkpoint.metadata.git).toMatchObject({ status: "none", commit: null });
    expect(none.flaws).toEqual([]);
    fs.writeFileSync(join(lab.worktree, ".git"), "gitdir: /nowhere/at/all\n");
    const broken = await lab.checkpoint();
    expect(broken.checkpoint.metadata.git.status).toBe("degraded");
    expect(broken.flaws).toEqual([
      expect.objectContaining({ path: "worktree/.git", kind: "degraded" }),
      expect.objectContaining({ path: "worktree", kind: "degraded" }),
    ]);
    fs.rmSync(join(lab.worktree, ".git"));
    fs.symlinkSync("nowhere", join(lab.worktree, ".git"));
    expect((await lab.checkpoint()).checkpoint.metadata.git.status).toBe("degraded");
  });

  it("is not created through a worktree that is a symlink: this is reported, and the target is not touched", async () => {
    using lab = createRepository();
    const elsewhere = join(lab.directory, "elsewhere");
    fs.renameSync(lab.worktree, elsewhere);
    fs.symlinkSync(elsewhere, lab.worktree);
    for (let round = 0; round < 2; round += 1) {
      fs.writeFileSync(join(elsewhere, "new"), `round ${round}`);
      const { flaws, checkpoint } = await lab.checkpoint();
      expect(flaws).toEqual([
        {
          path: "worktree",
          kind: "degraded",
          reason: expect.stringContaining("its target is not saved"),
        },
      ]);
      expect(checkpoint.metadata.git).toMatchObject({ status: "none", commit: null });
    }
    expect(lab.git("for-each-ref", "refs/lazarus")).toBe("");
  });

  it("works with SHA-256 objects, a shallow clone, alternates and a sparse checkout", async () => {
    using sha256 = createRepository({}, false);
    sha256.git("init", "-q", "--object-format=sha256");
    sha256.write("a", "one");
    sha256.git("add", "-A");
    sha256.git("commit", "-qm", "first");
    sha256.write("a", "two");
    expect((await checkCommit(sha256)).checkpoint.metadata.git.commit).toHaveLength(64);
    using source = createRepository();
    source.git("commit", "-q", "--allow-empty", "-m", "second");
    for (const how of [["--depth=1"], ["--shared"]]) {
      using clone = createRepository({}, false);
      clone.git("clone", "-q", ...how, `file://${source.worktree}`.slice(how[0] === "--shared" ? 7 : 0), ".");
      clone.write("untracked", "x");
      await checkCommit(clone);
      clone.write("untracked", "xy");
      await checkCommit(clone);
    }
    source.git("sparse-checkout", "set", "nothing-else");
    expect(fs.existsSync(join(source.worktree, "dir"))).toBe(false);
    source.write("untracked", "x");
    await checkCommit(source);
    source.write("untracked", "xy");
    const sparse = await checkCommit(source);
    expect(source.git("ls-tree", "-r", "--name-only", sparse.checkpoint.metadata.git.commit!)).toContain(
      "dir/also.txt",
    );
  });

  it("is degraded, with all files saved, when a filter fails, git is missing or its cache is not a directory", async () => {
    using lab = createRepository();
    lab.git("config", "filter.bad.clean", "exit 1");
    lab.git("config", "filter.bad.required", "true");
    lab.write(".gitattributes", "*.bad filter=bad\n");
    lab.write("x.bad", "x");
    const before = lab.userState();
    const failed = await lab.checkpoint();
    expect(failed.checkpoint.metadata.git).toMatchObject({ status: "degraded", branch: "main" });
    expect(failed.flaws).toEqual([expect.objectContaining({ path: "worktree", kind: "degraded" })]);
    expect(failed.flaws[0]!.reason).not.toContain("\n");
    expect(lab.text("worktree/x.bad")).toBe("x");
    expect(lab.userState()).toEqual(before);
    fs.rmSync(join(lab.worktree, "x.bad"));
    const bare = lab.with({ environment: { PATH: "/nowhere" } });
    expect((await bare.checkpoint()).checkpoint.metadata.git).toMatchObject({
      status: "degraded",
      note: "git: not found in PATH",
    });
    fs.rmSync(lab.context.cacheDirectory, { recursive: true });
    fs.writeFileSync(lab.context.cacheDirectory, "not a directory");
    expect((await lab.checkpoint()).checkpoint.metadata.git.status).toBe("degraded");
    fs.rmSync(lab.context.cacheDirectory);
    await checkCommit(lab);
  });

  it("kills a filter that hangs", async () => {
    using lab = createRepository();
    const pidFile = join(lab.directory, "pid");
    lab.git("config", "filter.slow.clean", `sh -c 'echo $$ > ${pidFile}; sleep 300'`);
    lab.write(".gitattributes", "*.slow filter=slow\n");
    lab.write("x.slow", "x");
    // With fake timers, the timeout cannot expire while a busy machine is still starting git.
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    onTestFinished(() => void vi.useRealTimers());
    const position = commitWorktree({
      worktree: lab.worktree,
      checkpointId: "id",
      createdAtMs: 0,
      headId: null,
      cacheDirectory: join(lab.directory, "cache"),
      environment: { PATH: process.env.PATH },
      changes: undefined,
      secrets: [],
      isSecret: () => false,
      secretRules: "",
      timeoutMs: 700,
    });
    const pidText = () => (fs.existsSync(pidFile) ? fs.readFileSync(pidFile, "utf8") : "");
    // Not expect.poll, which advances the fake clock.
    while (!pidText().endsWith("\n")) await pause(10);
    const pid = Number(pidText());
    vi.advanceTimersByTime(699);
    expect(vi.getTimerCount(), "still waiting").toBe(1);
    vi.advanceTimersByTime(1);
    expect(await position).toMatchObject({ status: "degraded", note: "git add: timed out after 0.7 s" });
    while (!isGone(pid)) await pause(10);
  });

  it("reports that git refuses a repository of another user", async ({ skip }) => {
    if (!isRoot) skip("only root can give a repository to another user");
    using lab = createRepository();
    execFileSync("chown", ["-R", "1000:1000", lab.worktree]);
    const { checkpoint } = await lab.checkpoint();
    expect(checkpoint.metadata.git).toMatchObject({
      status: "degraded",
      note: expect.stringContaining("dubious ownership"),
    });
  });

  it("is created again when its ref was deleted", async () => {
    using lab = createRepository();
    const first = await checkCommit(lab);
    lab.git("update-ref", "-d", first.checkpoint.metadata.git.ref!);
    const second = await checkCommit(lab);
    expect(second.checkpoint.metadata.git.ref).not.toBe(first.checkpoint.metadata.git.ref);
  });

  it("is the same when nothing changed, and shares its ref", async () => {
    using lab = createRepository();
    const first = await checkCommit(lab);
    const second = await lab.checkpoint();
    expect(second.outcome).toBe("unchanged");
    expect(second.checkpoint.metadata.git.ref).toBe(first.checkpoint.metadata.git.ref);
    // A change elsewhere in the cell.
    fs.writeFileSync(join(lab.cell, "note"), "x");
    const third = await checkCommit(lab);
    expect(third.checkpoint.metadata.git.commit).toBe(first.checkpoint.metadata.git.commit);
  });

  it("is correct after checkpoints with another cache directory", async () => {
    using lab = createRepository();
    lab.write("goes", "x");
    await checkCommit(lab);
    const cache = lab.context.cacheDirectory;
    fs.cpSync(cache, `${cache}-mine`, { recursive: true, preserveTimestamps: true });
    fs.rmSync(join(lab.worktree, "goes"));
    await checkCommit(lab);
    // Back to a private index without the removal.
    fs.rmSync(cache, { recursive: true });
    fs.renameSync(`${cache}-mine`, cache);
    lab.write("comes", "x");
    await checkCommit(lab);
  });
});

describe("an incremental commit has the same tree as a full one", () => {
  // With the second seed an ignored file becomes a link.
  it.each([SEED, 847_040])("over random edits (seed %d)", async (seed) => {
    const random = createRandom(seed);
    using lab = createRepository();
    lab.write(".gitignore", "*.ignored\n");
    await lab.checkpoint();
    const names = ["a", "b", "c", "a/x", "b/y", "c/z.ignored", "tracked.txt", "dir/also.txt", "odd \n name"];
    const edit = () => {
      const path = join(lab.worktree, random.pick(names));
      const parent = join(path, "..");
      if (!fs.lstatSync(parent, { throwIfNoEntry: false })?.isDirectory()) return;
      const stat = fs.lstatSync(path, { throwIfNoEntry: false });
      if (stat !== undefined && random.chance(0.5)) fs.rmSync(path, { recursive: true });
      else if (stat?.isDirectory())
        fs.writeFileSync(join(path, `inner${random.int(0, 3)}`), String(random.int(0, 99)));
      else {
        fs.rmSync(path, { force: true });
        random.pick([
          () => fs.writeFileSync(path, String(random.int(0, 99))),
          () => fs.writeFileSync(path, "#!", { mode: 0o755 }),
          () => fs.symlinkSync(random.pick(["dir", "nowhere", "."]), path),
          () => fs.mkdirSync(path),
        ])();
      }
    };
    for (let round = 0; round < 25; round += 1) {
      for (let i = random.int(1, 4); i > 0; i -= 1) edit();
      if (random.chance(0.1)) lab.git("commit", "-qam", "user", "--allow-empty");
      await checkCommit(lab);
    }
  });
});

function isGone(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A zombie waits for its parent, which is init here.
    return fs.readFileSync(`/proc/${pid}/stat`, "utf8").includes(") Z ");
  } catch {
    return true;
  }
}
