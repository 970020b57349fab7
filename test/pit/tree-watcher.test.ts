// The watcher of trees, on the real kernel: every kind of change is in the set, and nothing outside the tree is. Each set is
// compared with what the independent lister sees as changed.
import { execFileSync, spawnSync } from "node:child_process";
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  readdirSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterEach, beforeEach, expect, it } from "vitest";
import { openTreeWatcher, type TakenPaths } from "../../src/pit/watch/tree-watcher.ts";
import { startWorker } from "../../src/platform/worker-module.ts";
import { reportSkipped } from "../snapshot/tools.ts";
import { createWatchedTree, findUnreported, type WatchedTreeLab } from "./watched-tree.ts";

let lab: WatchedTreeLab;

beforeEach(async () => {
  lab = await createWatchedTree(["/logs/skip*", "node_modules"], (root) => {
    mkdirSync(join(root, "old/sub"), { recursive: true });
    mkdirSync(join(root, "logs"));
    mkdirSync(join(root, "node_modules/deep"), { recursive: true });
    writeFileSync(join(root, "old/file"), "");
  });
});
afterEach(() => lab[Symbol.asyncDispose]());

const at = (path: string) => join(lab.root, path);

/** The set after an action, which must name everything that changed. */
async function changes(action: () => void): Promise<TakenPaths> {
  const before = lab.list();
  action();
  const taken = await lab.take();
  expect(findUnreported(before, lab.list(), [taken])).toEqual([]);
  return { ...taken, paths: taken.paths.toSorted(), trees: taken.trees.toSorted() };
}

const EMPTY = { unknown: null, paths: [], trees: [] };
const paths = (...names: string[]) => ({ ...EMPTY, paths: names });

it("names every kind of change of a file", async () => {
  expect(await changes(() => writeFileSync(at("old/new"), ""))).toEqual(paths("old", "old/new"));
  expect(await changes(() => appendFileSync(at("old/new"), "x"))).toEqual(paths("old/new"));
  expect(await changes(() => chmodSync(at("old/new"), 0o600))).toEqual(paths("old/new"));
  expect(await changes(() => renameSync(at("old/new"), at("moved")))).toEqual(
    paths(".", "moved", "old", "old/new"),
  );
  expect(await changes(() => rmSync(at("moved")))).toEqual(paths(".", "moved"));
  expect(await changes(() => symlinkSync("nowhere", at("link")))).toEqual(paths(".", "link"));
  expect(await changes(() => chmodSync(at("old"), 0o750))).toEqual(paths("old"));
  expect(await changes(() => {})).toEqual(EMPTY);
});

it("names directories that appear, at any depth and in any number, and then what changes in them", async () => {
  expect(await changes(() => mkdirSync(at("a/b/c"), { recursive: true }))).toMatchObject({ trees: ["a"] });
  expect(await changes(() => writeFileSync(at("a/b/c/file"), ""))).toEqual(paths("a/b/c", "a/b/c/file"));
  await changes(() => {
    for (let index = 0; index < 300; index += 1) mkdirSync(at(`many/${index}/deep`), { recursive: true });
  });
  expect(await changes(() => writeFileSync(at("many/299/deep/file"), ""))).toEqual(
    paths("many/299/deep", "many/299/deep/file"),
  );
});

it("follows directories that move in, within, over each other and out of the tree", async () => {
  const away = join(lab.outside, "away");
  mkdirSync(join(away, "sub"), { recursive: true });
  expect(await changes(() => renameSync(away, at("in")))).toMatchObject({ trees: ["in"] });
  expect(await changes(() => writeFileSync(at("in/sub/file"), ""))).toEqual(paths("in/sub", "in/sub/file"));
  expect(await changes(() => renameSync(at("in"), at("within")))).toMatchObject({ trees: ["within"] });
  expect(await changes(() => writeFileSync(at("within/sub/file"), "x"))).toEqual(paths("within/sub/file"));
  mkdirSync(at("target"));
  expect(await changes(() => renameSync(at("within"), at("target")))).toMatchObject({
    trees: expect.arrayContaining(["target"]),
  });
  expect(await changes(() => writeFileSync(at("target/sub/file"), "xx"))).toEqual(paths("target/sub/file"));
  await changes(() => renameSync(at("target"), away));
  expect(await changes(() => writeFileSync(join(away, "sub/file"), "xxx"))).toEqual(EMPTY);
});

it("watches a directory that was deleted and created again", async () => {
  await changes(() => {
    rmSync(at("old"), { recursive: true });
    mkdirSync(at("old/sub"), { recursive: true });
  });
  expect(await changes(() => writeFileSync(at("old/sub/file"), ""))).toEqual(
    paths("old/sub", "old/sub/file"),
  );
});

it("names nothing that is ignored, behind a link, or in a tree that was removed", async () => {
  symlinkSync(lab.outside, at("link"));
  await lab.take();
  writeFileSync(join(lab.outside, "file"), "");
  writeFileSync(at("logs/skip.log"), "");
  writeFileSync(at("node_modules/deep/file"), "");
  // The directory's own time has changed.
  expect(await lab.take()).toEqual(paths("logs"));
  lab.watcher.remove("m1");
  expect((await lab.take()).unknown).toBe("it is not watched");
  expect(lab.watcher.read("m1")).toBe(undefined);
});

it("spells names that are not UTF-8 as a listing does", async () => {
  const name = Buffer.concat([Buffer.from(`${lab.root}/`), Buffer.of(0x64, 0xff, 0xfe)]);
  await changes(() => mkdirSync(name));
  const file = Buffer.concat([name, Buffer.from("/file")]);
  expect(await changes(() => writeFileSync(file, ""))).toEqual(paths("d\udcff\udcfe", "d\udcff\udcfe/file"));
});

it("keeps two trees apart, one of them in two places", async () => {
  const [second, app] = [join(lab.outside, "second"), join(lab.outside, "app")];
  for (const each of [second, app]) mkdirSync(each);
  const roots = [
    { path: second, prefix: "" },
    { path: app, prefix: "worktree" },
  ];
  lab.watcher.add("m2", { roots, ignore: ["/worktree/skip"] });
  await lab.watcher.take("m2");
  writeFileSync(join(app, "file"), "");
  writeFileSync(join(app, "skip"), "");
  expect((await lab.watcher.take("m2")).paths.toSorted()).toEqual(["worktree", "worktree/file"]);
  expect(await lab.take()).toEqual(EMPTY);
});

it("counts a change when a tree is replaced: what happened in between is not known", async () => {
  const roots = [{ path: lab.root, prefix: "" }];
  const count = async () => {
    await lab.take();
    return lab.watcher.read("m1")!.changes;
  };
  const before = await count();
  lab.watcher.add("m1", { roots, ignore: ["other"] });
  const replaced = await count();
  expect(replaced).toBeGreaterThan(before);
  lab.watcher.add("m1", { roots, ignore: ["other"] });
  expect(await count()).toBe(replaced);
  lab.watcher.remove("m1");
  lab.watcher.add("m1", { roots, ignore: ["other"] });
  expect(await count()).toBeGreaterThan(replaced);
});

it("keeps what was put back", async () => {
  const taken = await changes(() => writeFileSync(at("old/file"), "1"));
  lab.watcher.putBack("m1", taken);
  writeFileSync(at("old/later"), "");
  expect((await lab.take()).paths.toSorted()).toEqual(["old", "old/file", "old/later"]);
});

it("returns an unknown set after its worker ended, and watches with a new one", async () => {
  const workers: Worker[] = [];
  await using watcher = openTreeWatcher({
    cookies: join(lab.directory, "other-cookies"),
    start: (name, _from, options) => {
      const from = new URL("../../src/pit/watch/tree-watcher.ts", import.meta.url).href;
      const worker = startWorker(name, from, options);
      workers.push(worker);
      return worker;
    },
  });
  watcher.add("m1", { roots: [{ path: lab.root, prefix: "" }], ignore: [] });
  await watcher.take("m1");
  expect(await watcher.take("m1")).toEqual(EMPTY);
  writeFileSync(at("lost"), "");
  await workers[0]!.terminate();
  expect((await watcher.take("m1")).unknown).not.toBe(null);
  writeFileSync(at("seen"), "");
  expect((await watcher.take("m1")).paths.toSorted()).toEqual([".", "seen"]);
  expect(workers.length).toBe(2);
});

it("returns an unknown set while its own test change is not reported, and complete sets afterwards", async () => {
  expect(await lab.take()).toEqual(EMPTY);
  const cookies = join(lab.directory, "cookies");
  rmSync(cookies, { recursive: true });
  writeFileSync(cookies, "in the way");
  writeFileSync(at("old/file"), "1");
  expect((await lab.take()).unknown).toContain("did not report its own test change");
  rmSync(cookies);
  writeFileSync(at("old/file"), "22");
  expect((await lab.take()).paths).toEqual(["old/file"]);
});

it("leaves no queue open", async () => {
  const queues = () =>
    readdirSync("/proc/self/fd").filter((fd) => {
      try {
        return readlinkSync(`/proc/self/fd/${fd}`).includes("inotify");
      } catch {
        return false;
      }
    }).length;
  const before = queues();
  const watcher = openTreeWatcher({ cookies: join(lab.directory, "other-cookies") });
  watcher.add("m1", { roots: [{ path: lab.root, prefix: "" }], ignore: [] });
  await watcher.take("m1");
  expect(queues()).toBe(before + 1);
  await watcher[Symbol.asyncDispose]();
  expect(queues()).toBe(before);
});

it("returns an unknown set after a mount, and watches what was mounted", async () => {
  const probe = spawnSync("mount", ["--bind", lab.outside, at("old")], { encoding: "utf8" });
  if (probe.status !== 0) {
    reportSkipped("mounts in a watched tree", `mount is not allowed here: ${probe.stderr || probe.error}`);
    return;
  }
  try {
    expect((await lab.take()).unknown).toContain("mounted");
    writeFileSync(join(lab.outside, "file"), "");
    expect((await lab.take()).paths.toSorted()).toEqual(["old", "old/file"]);
  } finally {
    execFileSync("umount", [at("old")]);
  }
  expect((await lab.take()).unknown).toContain("mounted");
  expect(await changes(() => writeFileSync(at("old/file"), "x"))).toEqual(paths("old/file"));
});
