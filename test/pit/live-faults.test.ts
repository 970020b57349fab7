// What could make a live point incomplete: after each fault, the point that is taken from what the watch reported is restored and
// compared with the cell by an independent lister.
import { execFileSync, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, onTestFinished } from "vitest";
import { PYTHON } from "../snapshot/list-tree.ts";
import { reportSkipped } from "../snapshot/tools.ts";
import { createBurst, createLiveLab, type LiveLab } from "./live-lab.ts";

let lab: LiveLab;

beforeEach(async () => {
  lab = await createLiveLab((worktree) => {
    for (const path of ["a/b", "c", "d"]) fs.mkdirSync(join(worktree, path), { recursive: true });
    for (const path of ["a/one", "a/b/two", "c/three"]) fs.writeFileSync(join(worktree, path), path);
  });
});
afterEach(() => lab[Symbol.asyncDispose]());

const at = (path: string) => join(lab.worktree, path);

/** Takes a point, from a set unless `walks`; it must equal the cell. */
async function expectSaved({ walks = false } = {}): Promise<void> {
  await lab.point();
  expect(lab.lastSet.unknown === null).toBe(!walks);
  expect(await lab.differences()).toEqual([]);
}

// More events than the kernel's queue holds (16,384); the soak test creates 50,000 files.
it("20,000 files that are created in a burst", async () => {
  createBurst(lab.worktree, 20_000);
  await lab.point();
  expect(await lab.differences()).toEqual([]);
  fs.writeFileSync(at("many/19900/19999"), "changed");
  await expectSaved();
});

it("directories that are moved in, out and over each other", async () => {
  const away = join(lab.outside, "away");
  fs.mkdirSync(join(away, "deep"), { recursive: true });
  fs.writeFileSync(join(away, "deep/file"), "from outside");
  fs.renameSync(away, at("in"));
  await expectSaved();
  fs.renameSync(at("a"), join(lab.outside, "gone"));
  fs.writeFileSync(join(lab.outside, "gone/b/two"), "changed outside");
  await expectSaved();
  fs.renameSync(at("in"), at("d"));
  fs.renameSync(join(lab.outside, "gone"), at("in"));
  fs.appendFileSync(at("d/deep/file"), "appended");
  await expectSaved();
  fs.renameSync(at("c"), at("swap"));
  fs.renameSync(at("d"), at("c"));
  fs.renameSync(at("swap"), at("d"));
  await expectSaved();
});

it("a directory that is deleted and recreated, as another kind of file in between", async () => {
  fs.rmSync(at("a"), { recursive: true });
  fs.writeFileSync(at("a"), "now a file");
  fs.rmSync(at("a"));
  fs.mkdirSync(at("a/b"), { recursive: true });
  fs.writeFileSync(at("a/b/new"), "new");
  await expectSaved();
  fs.rmSync(at("a"), { recursive: true });
  fs.symlinkSync("c", at("a"));
  await expectSaved();
});

it("the worktree itself, which is deleted and recreated", async () => {
  fs.rmSync(lab.worktree, { recursive: true });
  fs.mkdirSync(lab.worktree);
  fs.writeFileSync(at("first"), "1");
  await lab.point();
  expect(await lab.differences()).toEqual([]);
  fs.mkdirSync(at("a/b"), { recursive: true });
  fs.writeFileSync(at("a/b/two"), "22");
  await lab.point();
  expect(await lab.differences()).toEqual([]);
});

it.each([
  ["watches", "max_user_watches"],
  ["instances", "max_user_instances"],
])("the kernel's limit of %s: the cell is walked, and the sysctl is named", async (what, sysctl) => {
  // A user namespace has its own limits.
  const limit = `echo ${what === "watches" ? 7 : 0} > /proc/sys/user/max_inotify_${what}`;
  const program = join(import.meta.dirname, "few-watches.ts");
  const line = `${limit} && exec "$0" "$1"`;
  const words = ["--user", "--map-root-user", "sh", "-c", line, process.execPath, program];
  if (spawnSync("unshare", ["--user", "--map-root-user", "sh", "-c", limit]).status !== 0) {
    reportSkipped(`the real limit of inotify ${what}`, "unshare --user is not allowed here");
    return;
  }
  const { stdout, stderr } = spawnSync("unshare", words, { encoding: "utf8" });
  const found = stdout === "" ? { stderr } : JSON.parse(stdout);
  expect(found).toEqual({
    unwatched: expect.stringContaining(`fs.inotify.${sysctl}`),
    differences: [[], []],
  });
});

it("a bind mount that is added and removed", async () => {
  const other = join(lab.outside, "other");
  fs.mkdirSync(other);
  fs.writeFileSync(join(other, "mounted"), "1");
  const { status, stderr, error } = spawnSync("mount", ["--bind", other, at("d")], { encoding: "utf8" });
  if (status !== 0) {
    reportSkipped("bind mounts in a cell", `mount is not allowed here: ${stderr || error}`);
    return;
  }
  let isMounted = true;
  const unmount = () => {
    if (isMounted) execFileSync("umount", [at("d")]);
    isMounted = false;
  };
  onTestFinished(unmount);
  await expectSaved({ walks: true });
  fs.writeFileSync(join(other, "mounted"), "22");
  await expectSaved();
  unmount();
  await expectSaved({ walks: true });
});

it("a directory of the cell that is also mounted at another place in it", async () => {
  const { status, stderr, error } = spawnSync("mount", ["--bind", at("a"), at("d")], { encoding: "utf8" });
  if (status !== 0) {
    reportSkipped("bind mounts in a cell", `mount is not allowed here: ${stderr || error}`);
    return;
  }
  try {
    // Afterwards the rows of the files are not racy, so that points do not look at them.
    lab.setClock(60_000);
    await expectSaved({ walks: true });
    for (const place of ["a", "d"]) {
      fs.appendFileSync(at(`${place}/one`), "more");
      fs.writeFileSync(at(`${place}/b/from-${place}`), "new");
      fs.mkdirSync(at(`${place}/in-${place}/deep`), { recursive: true });
      await expectSaved();
      fs.renameSync(at(`${place}/in-${place}`), at(`${place}/moved-${place}`));
      fs.writeFileSync(at(`${place}/moved-${place}/deep/file`), "new");
      await expectSaved();
      fs.rmSync(at(`${place}/moved-${place}/deep`), { recursive: true });
      await expectSaved();
    }
  } finally {
    execFileSync("umount", [at("d")]);
  }
  await expectSaved({ walks: true });
});

it("a file that is mounted over a file of the cell: the cell is walked", async () => {
  const other = join(lab.outside, "other");
  fs.writeFileSync(other, "1");
  const { status, stderr, error } = spawnSync("mount", ["--bind", other, at("a/one")], { encoding: "utf8" });
  if (status !== 0) {
    reportSkipped("mounted files in a cell", `mount is not allowed here: ${stderr || error}`);
    return;
  }
  try {
    lab.setClock(60_000);
    await expectSaved({ walks: true });
    fs.appendFileSync(other, "2");
    await expectSaved({ walks: true });
    expect(lab.lastSet.unknown).toContain("a/one is a mounted file");
  } finally {
    execFileSync("umount", [at("a/one")]);
  }
  await expectSaved({ walks: true });
  fs.appendFileSync(at("a/one"), "3");
  await expectSaved();
});

it("a file that is changed through another name in the cell", async () => {
  fs.linkSync(at("a/one"), at("c/link"));
  await expectSaved();
  fs.appendFileSync(at("c/link"), "through the link");
  await expectSaved();
  fs.rmSync(at("c/link"));
  await expectSaved();
});

it("a file that is changed through a name outside the cell: by the next audit, and counted", async () => {
  const outside = join(lab.outside, "outside");
  fs.linkSync(at("a/one"), outside);
  await lab.point();
  fs.appendFileSync(outside, "through a name outside");
  await lab.point({ isAudit: true });
  expect(await lab.differences()).toEqual([]);
  expect(lab.live.unseen).toEqual({ missed: 0, invisible: 1 });
});

it.each([
  { reason: "crash", files: 1 },
  { reason: "manual", files: 1 },
  { reason: "scheduled", files: 1 },
  { reason: "manual", files: 1100 },
] as const)(
  "a file that is changed through a name outside the cell: by a $reason checkpoint ($files such files)",
  async ({ reason, files }) => {
    fs.mkdirSync(join(lab.outside, "store"));
    for (let n = 0; n < files; n += 1) {
      const outside = join(lab.outside, "store", String(n));
      fs.writeFileSync(outside, String(n));
      fs.linkSync(outside, at(`linked-${n}`));
    }
    // Afterwards the rows of the files are not racy, so that points do not look at them.
    lab.setClock(60_000);
    await lab.point({ isAudit: true });
    fs.appendFileSync(join(lab.outside, "store", "0"), "through a name outside");
    await lab.point();
    expect(await lab.differences()).toHaveLength(2);
    await lab.live.checkpoint(lab.mission, { reason });
    expect(lab.lastSet.unknown).toBe(null);
    expect(await lab.differences()).toEqual([]);
  },
);

it("a file that is written through a descriptor whose name is gone: by the next audit, which is followed by walks", async () => {
  const fd = fs.openSync(at("a/temporary"), "w");
  fs.linkSync(at("a/temporary"), at("c/final"));
  fs.rmSync(at("a/temporary"));
  // Afterwards the row of the file is not racy.
  lab.setClock(60_000);
  await lab.point({ isAudit: true });
  await expectSaved();
  fs.writeSync(fd, "written");
  fs.closeSync(fd);
  await lab.point({ isAudit: true });
  expect(await lab.differences()).toEqual([]);
  expect(lab.live.unseen).toEqual({ missed: 1, invisible: 0 });
  lab.live.due(lab.context.machine.clock.monotonicMs());
  expect(lab.live.isWatched(lab.mission)).toBe(false);
});

it("a file that is changed through memory, while it is mapped and afterwards", async () => {
  const script = `
import mmap, sys
with open("a/one", "r+b") as file: memory = mmap.mmap(file.fileno(), 0)
for line in sys.stdin:
    if line.strip() == "end": memory.close()
    else: memory[0:1] = line[0:1].encode()
    print("done", flush=True)
`;
  const child = spawn(PYTHON, ["-c", script], { cwd: lab.worktree, stdio: ["pipe", "pipe", "inherit"] });
  onTestFinished(() => void child.kill("SIGKILL"));
  const say = async (text: string) => {
    child.stdin.write(`${text}\n`);
    await once(child.stdout, "data");
  };
  for (const letter of "xyz") {
    await say(letter);
    await lab.point();
    expect(fs.readFileSync(at("a/one"), "utf8")[0]).toBe(letter);
    expect(await lab.differences()).toEqual([]);
  }
  await say("q");
  await say("end");
  await expectSaved();
});

it("a clock that jumps by a day", async () => {
  const day = 86_400_000;
  for (const aheadMs of [day, -day, 0]) {
    lab.setClock(aheadMs);
    fs.appendFileSync(at("a/b/two"), "more");
    fs.writeFileSync(at(`at-${aheadMs}`), "new");
    await expectSaved();
    // Of the same size, within the same moment.
    fs.writeFileSync(at(`at-${aheadMs}`), "NEW");
    await expectSaved();
  }
});

it("a capture that fails: the next one includes its changes", async () => {
  const { vault } = lab.context.openMission("m1" as never);
  fs.writeFileSync(vault.journalFile, "damaged");
  fs.writeFileSync(at("a/new"), "1");
  await lab.point();
  fs.rmSync(vault.journalFile, { force: true });
  fs.writeFileSync(at("c/new"), "1");
  await expectSaved();
});
