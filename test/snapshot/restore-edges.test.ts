// Edge cases of restore: odd names, changed types, planted symlinks, files in no checkpoint, databases in use, changed
// settings.
import fs from "node:fs";
import net from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { posixSupport } from "../../src/platform/posix.ts";
import { beginRun } from "../../src/run/log/run-log.ts";
import { openCellRunStore } from "../../src/run/store/open.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { previewRestore, restoreCell } from "../../src/snapshot/operations/restore.ts";
import { undoRestore } from "../../src/snapshot/operations/undo.ts";
import { createWorld, differences, openMission, recordTree, type World } from "./restore-world.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

const read = (name: string) => fs.readFileSync(world.path(name), "utf8");

describe("a restore in place", () => {
  it("restores names that are not UTF-8, look like whiteouts, or have the maximum length", async () => {
    const names = [
      Buffer.from([0x6e, 0xff, 0xfe]),
      Buffer.from(".wh.secret"),
      Buffer.from("new\nline\t\u001b[31m"),
      Buffer.from("…ü\u202e"),
      Buffer.from("x".repeat(255)),
      Buffer.from("-rf *"),
      Buffer.from('quote"comma","'),
    ];
    const at = (name: Buffer) => Buffer.concat([Buffer.from(`${world.cell}/worktree/`), name]);
    for (const name of names) {
      fs.mkdirSync(at(name));
      fs.writeFileSync(Buffer.concat([at(name), Buffer.from("/"), name]), "then");
    }
    const before = recordTree(world.cell);
    await world.checkpoint();
    for (const name of names.slice(0, 4)) fs.rmSync(at(name), { recursive: true });
    for (const name of names.slice(4)) {
      fs.writeFileSync(Buffer.concat([at(name), Buffer.from("/"), name]), "now");
      fs.writeFileSync(Buffer.concat([at(name), Buffer.from([0x2f, 0xfd])]), "came later");
    }
    const { flaws } = await restoreCell(world.context, {});
    expect(flaws).toEqual([]);
    expect(differences(before, recordTree(world.cell))).toEqual([]);
  });

  it("replaces every type by every other, and back", async () => {
    const { posix } = posixSupport() as { posix: { makeFifo(path: string, mode: number): void } };
    const make: Record<string, (path: string) => void> = {
      file: (path) => fs.writeFileSync(path, "content"),
      directory: (path) => {
        fs.mkdirSync(join(path, "below"), { recursive: true });
        fs.writeFileSync(join(path, "below", "file"), "content");
      },
      link: (path) => fs.symlinkSync("../meta", path),
      fifo: (path) => posix.makeFifo(path, 0o640),
    };
    const pairs = Object.keys(make).flatMap((from) => Object.keys(make).map((to) => [from, to] as const));
    for (const [from, to] of pairs) make[from]!(world.path(`worktree/${from}-${to}`));
    const before = recordTree(world.cell);
    const { ref } = await world.checkpoint();
    for (const [from, to] of pairs) {
      fs.rmSync(world.path(`worktree/${from}-${to}`), { recursive: true });
      make[to]!(world.path(`worktree/${from}-${to}`));
    }
    const after = recordTree(world.cell);
    expect((await restoreCell(world.context, { checkpoint: ref.id })).flaws).toEqual([]);
    expect(differences(before, recordTree(world.cell))).toEqual([]);
    await undoRestore(world.context);
    expect(differences(after, recordTree(world.cell))).toEqual([]);
    expect(world.siblings()).toEqual([]);
  });

  it("changes a mode or a time without staging content", async () => {
    world.write("worktree/big", Buffer.alloc(3 << 20, 1));
    await world.checkpoint();
    const { ino } = fs.statSync(world.path("worktree/big"));
    fs.chmodSync(world.path("worktree/big"), 0o4755);
    const { changes } = await restoreCell(world.context, {});
    expect(changes).toMatchObject({ changed: [], added: [], removed: [], metadata: ["worktree/big"] });
    expect(fs.statSync(world.path("worktree/big"))).toMatchObject({ ino, mode: 0o100644 });
  });

  it("keeps holes, setuid bits and extended attributes", async (context) => {
    const file = world.write("worktree/sparse", "");
    fs.truncateSync(file, 50 << 20);
    const fd = fs.openSync(file, "r+");
    fs.writeSync(fd, "in the middle", 20 << 20);
    fs.closeSync(fd);
    fs.chmodSync(file, 0o6755);
    const { posix } = posixSupport() as { posix: import("../../src/platform/posix.ts").Posix };
    try {
      posix.setXattr(file, "user.note", Buffer.from([0, 255, 10]));
    } catch {
      context.skip("this file system has no user attributes");
    }
    const before = recordTree(world.cell);
    const blocks = fs.statSync(file).blocks;
    await world.checkpoint();
    fs.rmSync(file);
    expect((await restoreCell(world.context, {})).flaws).toEqual([]);
    expect(differences(before, recordTree(world.cell))).toEqual([]);
    expect(fs.statSync(file).blocks).toBeLessThanOrEqual(blocks + 16);
    expect(posix.listXattrs(file)).toEqual([{ name: "user.note", value: Buffer.from([0, 255, 10]) }]);
  });

  it("restores only the selected paths, and creates their parents", async () => {
    world.write("worktree/a/one", "1");
    world.write("worktree/a/two", "1");
    world.write("worktree/b", "1");
    const { ref } = await world.checkpoint();
    fs.rmSync(world.path("worktree/a"), { recursive: true });
    world.write("worktree/b", "2");
    world.write("worktree/c", "2");
    const { changes } = await restoreCell(world.context, {
      checkpoint: ref.id,
      paths: ["worktree/a/one", "worktree/c"],
    });
    expect(changes.added).toEqual(["worktree/a", "worktree/a/one"]);
    expect(changes.removed).toEqual(["worktree/c"]);
    expect(fs.readdirSync(world.path("worktree/a"))).toEqual(["one"]);
    expect(read("worktree/b")).toBe("2");
    await expect(
      restoreCell(world.context, { checkpoint: ref.id, paths: ["worktree/nope"] }),
    ).rejects.toThrow("nor in any other checkpoint");
    await expect(restoreCell(world.context, { checkpoint: ref.id, paths: ["../else"] })).rejects.toThrow(
      "is not inside the cell",
    );
  });

  it("never writes through a planted symlink", async () => {
    world.write("worktree/dir/file", "then");
    world.write("worktree/other/file", "then");
    const { ref } = await world.checkpoint();
    const outside = join(world.directory, "outside");
    fs.mkdirSync(outside);
    fs.writeFileSync(join(outside, "file"), "precious");
    fs.rmSync(world.path("worktree/dir"), { recursive: true });
    fs.symlinkSync(outside, world.path("worktree/dir"));
    fs.rmSync(world.path("worktree/other/file"));
    fs.symlinkSync(join(outside, "file"), world.path("worktree/other/file"));
    expect((await restoreCell(world.context, { checkpoint: ref.id })).flaws).toEqual([]);
    expect(read("worktree/dir/file")).toBe("then");
    expect(read("worktree/other/file")).toBe("then");
    expect(fs.readFileSync(join(outside, "file"), "utf8")).toBe("precious");
    expect(fs.readdirSync(outside)).toEqual(["file"]);
    // The undo removes and creates links without following them.
    await undoRestore(world.context);
    expect(fs.readlinkSync(world.path("worktree/dir"))).toBe(outside);
    expect(fs.readFileSync(join(outside, "file"), "utf8")).toBe("precious");
  });

  it("keeps paths excluded from the checkpoint, and paths excluded now", async () => {
    world.write("worktree/log/a.log", "1");
    world.write("worktree/cache/x", "of then");
    const excluding = (...exclude: string[]) =>
      openMission(world.directory, "m", { document: { snapshot: { exclude } } });
    const { ref } = await takeCheckpoint(excluding("*.log"), { reason: "manual" });
    world.write("worktree/log/b.log", "2");
    world.write("worktree/log/c.txt", "2");
    world.write("worktree/more/d.log", "2");
    world.write("worktree/cache/x", "of now, with no second copy");
    const { changes } = await restoreCell(excluding("cache"), { checkpoint: ref.id });
    expect(fs.readdirSync(world.path("worktree/log"))).toEqual(["a.log", "b.log"]);
    expect(fs.readdirSync(world.path("worktree/more"))).toEqual(["d.log"]);
    expect(read("worktree/cache/x")).toBe("of now, with no second copy");
    expect(changes.removed).toEqual(["worktree/log/c.txt"]);
    expect(changes.kept.map(({ path }) => path)).toContain("worktree/cache");
  });

  it("works in a cell that is a symlink inside the missions root", async () => {
    const place = join(world.cell, "..", "real");
    fs.renameSync(world.cell, place);
    fs.symlinkSync("real", world.cell);
    const context = openMission(world.directory, "m");
    fs.writeFileSync(join(place, "worktree/a"), "then");
    const before = recordTree(place);
    const { flaws } = await takeCheckpoint(context, { reason: "manual" });
    expect(flaws).toEqual([]);
    fs.writeFileSync(join(place, "worktree/a"), "now, and longer");
    fs.chmodSync(place, 0o755);
    await restoreCell(context, {});
    expect(differences(before, recordTree(place))).toEqual([]);
    expect(fs.readlinkSync(world.cell)).toBe("real");
    expect(world.siblings()).toEqual(["real"]);
  });

  it("leaves sockets alone", async () => {
    await world.checkpoint();
    const path = world.path("state/agent.sock");
    const server = net.createServer().listen(path);
    await new Promise((resolve) => server.on("listening", resolve));
    try {
      world.write("state/note", "x");
      await restoreCell(world.context, {});
      expect(fs.existsSync(world.path("state/note"))).toBe(false);
      expect(fs.lstatSync(path).isSocket()).toBe(true);
    } finally {
      server.close();
    }
  });

  it("removes the write-ahead log of a replaced database", async () => {
    const file = world.write("state/agent.db", "");
    const fill = (database: DatabaseSync, from: number, to: number) => {
      for (let n = from; n < to; n += 1) database.exec(`INSERT INTO t VALUES (${n}, '${"x".repeat(200)}')`);
    };
    const count = () => {
      using database = new DatabaseSync(file, { readOnly: true });
      expect(database.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
      return (database.prepare("SELECT count(*) AS n FROM t").get() as { n: number }).n;
    };
    const writer = new DatabaseSync(file);
    writer.exec("PRAGMA journal_mode=WAL; PRAGMA wal_autocheckpoint=0; CREATE TABLE t (n INTEGER, x TEXT)");
    fill(writer, 0, 50);
    const { ref } = await world.checkpoint();
    fill(writer, 50, 500);
    await expect(restoreCell(world.context, { checkpoint: ref.id })).rejects.toMatchObject({
      code: "CELL_IN_USE",
      details: { pid: process.pid },
    });
    // As a writer leaves it that is killed: closing the database would empty the log.
    const names = [file, `${file}-wal`, `${file}-shm`];
    for (const name of names) fs.copyFileSync(name, join(world.directory, fs.statSync(name).ino.toString()));
    const kept = names.map((name) => join(world.directory, fs.statSync(name).ino.toString()));
    writer.close();
    const aSecondAgo = Date.now() / 1000 - 1;
    for (const [n, name] of names.entries()) {
      fs.copyFileSync(kept[n]!, name);
      // In the millisecond of the safety checkpoint it would count as written after it.
      fs.utimesSync(name, aSecondAgo, aSecondAgo);
    }
    expect(fs.existsSync(`${file}-wal`)).toBe(true);
    const { safety, flaws } = await restoreCell(world.context, { checkpoint: ref.id });
    expect(flaws).toEqual([]);
    expect(count()).toBe(50);
    await restoreCell(world.context, { checkpoint: safety!.id });
    expect(count()).toBe(500);
  });

  it("refuses to replace the store of a run that a living process owns, even after it has closed the file", async () => {
    await world.checkpoint();
    const store = openCellRunStore(world.cell);
    const { lease } = await beginRun(store.log, { id: "r", agentId: "a", info: { runId: "r" } }, []);
    await store[Symbol.asyncDispose]();
    await expect(restoreCell(world.context, {})).rejects.toMatchObject({
      code: "RUN_BUSY",
      details: { run: "r", owner: lease.owner },
    });
    world.write("worktree/a", "");
    expect((await restoreCell(world.context, { paths: ["worktree"] })).changes.removed).toEqual([
      "worktree/a",
    ]);
    const again = openCellRunStore(world.cell);
    await again.log.journal.releaseLease("r", lease.epoch);
    await again[Symbol.asyncDispose]();
    expect((await restoreCell(world.context, {})).changes.removed).toContain("state/runs.db");
  });

  it("previews without changing anything", async () => {
    world.write("worktree/a", "1");
    await world.checkpoint();
    world.write("worktree/a", "2");
    world.write("worktree/b", "2");
    const before = recordTree(world.directory);
    const { changes } = await previewRestore(world.context, {});
    expect(changes).toMatchObject({ changed: ["worktree/a"], removed: ["worktree/b"] });
    // SQLite makes and removes files next to the stat store while it reads it.
    const changed = differences(before, recordTree(world.directory));
    expect(changed.filter((line) => !line.startsWith("run/cache/m: directory"))).toEqual([]);
  });

  it("reports that an agent may be running, and restores a missing cell", async () => {
    world.write(
      "state/heartbeat.json",
      JSON.stringify({ mission_id: "m", timestamp: Date.now() / 1000, status: "working" }),
    );
    const before = recordTree(world.cell);
    await world.checkpoint();
    expect((await restoreCell(world.context, {})).alive).toMatchObject({ status: "working" });
    fs.rmSync(world.cell, { recursive: true });
    const { safety, flaws } = await restoreCell(world.context, {});
    expect([safety, flaws]).toEqual([null, []]);
    expect(differences(before, recordTree(world.cell))).toEqual([]);
    expect(world.siblings()).toEqual([]);
  });
});
