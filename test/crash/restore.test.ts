// INV-3 with real processes: SIGKILL at every crash point of restore, undo, fork and drill. The next command finds the old
// or the new cell and a vault that verifies; nothing has to be repaired by hand.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { vaultHistory } from "../../src/snapshot/capture/save-effects.ts";
import { takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { drill } from "../../src/snapshot/operations/drill.ts";
import { forkMission } from "../../src/snapshot/operations/fork.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { undoRestore } from "../../src/snapshot/operations/undo.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import { createWorld, differences, openMission, recordTree } from "../snapshot/restore-world.ts";
import { runRestore } from "./kill.ts";

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const points = listCrashPoints(here("../../src/snapshot")).map(({ name }) => name);
const withPrefix = (prefix: string) => points.filter((name) => name.startsWith(prefix));

/** Points that a plain restore does not reach; they are tested below or in restore-rare.test.ts. */
const ELSEWHERE = new Set([
  "snapshot.restore.rebuilt",
  "snapshot.restore.rebuild-marked",
  "snapshot.restore.undo-forgotten",
  "snapshot.restore.rebuilt-conversation",
  "snapshot.restore.put-back",
  "snapshot.restore.set-aside",
  "snapshot.restore.copied-across",
  // Only for a worktree outside the cell: restore-outside.test.ts.
  ...withPrefix("snapshot.restore.worktree-"),
  ...withPrefix("snapshot.restore.to-"),
]);
/** Passed once for each path, so also killed at the second pass. */
const REPEATED = /\.(placed|removed|cleared|directory-made|directory-finished|adjusted)$/;

let template: string;
let first: string;
let before: Map<string, string>;
let after: Map<string, string>;

/** A database as a busy agent leaves it: the last transactions are in the write-ahead log only. */
function leaveBusyDatabase(file: string, rows: number): void {
  const database = new DatabaseSync(file);
  database.exec("PRAGMA journal_mode=WAL; CREATE TABLE IF NOT EXISTS t (n INTEGER); DELETE FROM t;");
  for (let n = 0; n < rows; n += 1) database.exec(`INSERT INTO t VALUES (${n})`);
  for (const suffix of ["", "-wal"]) fs.copyFileSync(file + suffix, `${file}.copy${suffix}`);
  database.close();
  for (const suffix of ["", "-wal"]) fs.renameSync(`${file}.copy${suffix}`, file + suffix);
}

function countRows(file: string): number {
  using database = new DatabaseSync(file, { readOnly: true });
  expect(database.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" });
  return (database.prepare("SELECT count(*) AS n FROM t").get() as { n: number }).n;
}

beforeAll(async () => {
  template = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "lazarus-kill-")));
  const world = createWorld(template);
  for (const name of ["a", "b", "c"]) world.write(`worktree/${name}`, `${name} of then`);
  world.write("worktree/gone/deep", "will be removed");
  world.write("worktree/type", "a file then, a directory later");
  world.write("worktree/mode", "only its mode changes");
  world.write("worktree/time", "only its time changes");
  fs.linkSync(world.path("worktree/a"), world.path("worktree/a-too"));
  leaveBusyDatabase(world.write("state/db", ""), 3);
  first = (await world.checkpoint()).ref.id;
  for (const name of ["a", "b", "c"]) world.write(`worktree/${name}`, `${name} of now, and longer`);
  fs.rmSync(world.path("worktree/gone"), { recursive: true });
  fs.rmSync(world.path("worktree/type"));
  world.write("worktree/type/1", "x");
  world.write("worktree/type/2/3", "x");
  world.write("worktree/new/1", "x");
  world.write("worktree/new/2", "x");
  fs.chmodSync(world.path("worktree/mode"), 0o600);
  fs.utimesSync(world.path("worktree/time"), 1, 1);
  leaveBusyDatabase(world.path("state/db"), 5);
  before = recordTree(world.cell);
  // The expected result, from a restore that is not killed.
  const home = copyOfTemplate();
  try {
    const context = openMission(home, "m");
    expect((await restoreCell(context, { checkpoint: first })).flaws).toEqual([]);
    after = recordTree(context.cellRoot);
    expect(after.has("state/db-wal")).toBe(false);
    expect(countRows(join(context.cellRoot, "state/db"))).toBe(3);
  } finally {
    fs.rmSync(home, { recursive: true });
  }
});

afterAll(() => fs.rmSync(template, { recursive: true, force: true }));

/** A copy with exact times and hard links. */
function copyOfTemplate(): string {
  const home = fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "lazarus-kill-")));
  execFileSync("cp", ["-a", `${template}/.`, home]);
  return home;
}

/** Kills an operation at `point` in a copy of the template, then calls `check` on that copy. */
async function kill(
  point: string,
  args: readonly string[],
  check: (home: string) => Promise<void>,
  prepare?: (home: string) => Promise<void>,
) {
  const home = copyOfTemplate();
  try {
    await prepare?.(home);
    const { signal, stdout, stderr } = await runRestore([home, ...args], point);
    expect(signal, `${point} is never reached: make this test reach it: ${stderr}`).toBe("SIGKILL");
    expect(stdout).toBe("");
    await check(home);
    for (const mission of fs.readdirSync(join(home, "vault"))) {
      const { findings } = await verifyVault(openMission(home, mission).vault, { deep: true });
      expect(findings).toEqual([]);
    }
  } finally {
    fs.rmSync(home, { recursive: true, force: true });
  }
}

const siblings = (home: string) =>
  fs.readdirSync(join(home, "missions")).filter((name) => name.startsWith("."));
const passes = (point: string) => (REPEATED.test(point) ? [1, 2] : [1]);

/** Fails unless the cell is exactly in the old or the new state, and returns which. */
function checkCell(home: string): "old" | "new" {
  const seen = recordTree(openMission(home, "m").cellRoot);
  // SQLite rebuilds the -shm file whenever the database is read.
  const fromOld = differences(before, seen).filter((line) => !/^state(\/db-shm)?:/.test(line));
  const fromNew = differences(after, seen);
  if (fromOld.length > 0) expect(fromNew).toEqual([]);
  return fromOld.length === 0 ? "old" : "new";
}

describe.concurrent("a restore killed with SIGKILL", () => {
  for (const point of withPrefix("snapshot.restore.").filter((name) => !ELSEWHERE.has(name))) {
    for (const pass of passes(point)) {
      it(`at ${point}, pass ${pass}: the next checkpoint captures the old or the new cell`, async () => {
        await kill(`${point}#${pass}`, ["restore", first], async (home) => {
          const journalled = fs.existsSync(openMission(home, "m").vault.journalFile);
          const { flaws } = await takeCheckpoint(openMission(home, "m"), { reason: "manual" });
          expect(flaws).toEqual([]);
          const found = checkCell(home);
          if (journalled) expect(found).toBe("new");
          expect(siblings(home)).toEqual([]);
          expect(fs.existsSync(openMission(home, "m").vault.journalFile)).toBe(false);
          if (found === "old") return;
          await undoRestore(openMission(home, "m"));
          expect(countRows(`${openMission(home, "m").cellRoot}/state/db`)).toBe(5);
        });
      });
    }
  }

  it("at snapshot.restore.placed: repeating the restore completes it", async () => {
    await kill("snapshot.restore.placed#2", ["restore", first], async (home) => {
      const result = await restoreCell(openMission(home, "m"), { checkpoint: first });
      expect(result.finished?.target).toBe(first);
      expect(result.finished?.flaws).toEqual([]);
      expect(checkCell(home)).toBe("new");
    });
  });

  it("at snapshot.restore.placed, with the staging directory removed: the files come from the vault", async () => {
    await kill("snapshot.restore.placed#2", ["restore", first], async (home) => {
      fs.rmSync(join(home, "missions/.lazarus-restore-m"), { recursive: true });
      const { finished } = await restoreCell(openMission(home, "m"), { checkpoint: first });
      expect(finished?.flaws).toEqual([]);
      expect(checkCell(home)).toBe("new");
    });
  });

  it("at snapshot.restore.placed, with a damaged journal: it is moved aside, and a new restore succeeds", async () => {
    await kill("snapshot.restore.placed#2", ["restore", first], async (home) => {
      const context = openMission(home, "m");
      fs.truncateSync(context.vault.journalFile, fs.statSync(context.vault.journalFile).size - 10);
      await expect(restoreCell(context, { checkpoint: first })).rejects.toMatchObject({
        code: "CELL_DAMAGED",
        message: expect.stringContaining("was moved to"),
      });
      await restoreCell(context, { checkpoint: first });
      expect(checkCell(home)).toBe("new");
    });
  });

  it("at snapshot.restore.placed, with new writes of the agent: they are moved aside, not lost", async () => {
    await kill("snapshot.restore.journalled", ["restore", first], async (home) => {
      const file = join(openMission(home, "m").cellRoot, "worktree/c");
      fs.writeFileSync(file, "written after the crash");
      const { finished } = await restoreCell(openMission(home, "m"), { checkpoint: first });
      expect(finished?.flaws.map(({ path }) => path)).toEqual(["worktree/c"]);
      const place = finished!.flaws[0]!.reason.split(" was moved to ")[1]!;
      expect(fs.readFileSync(place, "utf8")).toBe("written after the crash");
      expect(checkCell(home)).toBe("new");
    });
  });

  it("with the cell removed before the next command: it is restored completely", async () => {
    await kill("snapshot.restore.placed#2", ["restore", first], async (home) => {
      fs.rmSync(openMission(home, "m").cellRoot, { recursive: true });
      await restoreCell(openMission(home, "m"), { checkpoint: first });
      expect(checkCell(home)).toBe("new");
    });
  });
});

describe.concurrent("a restore of a missing cell killed with SIGKILL", () => {
  for (const point of [
    "snapshot.restore.rebuilt",
    "snapshot.restore.rebuild-marked",
    "snapshot.restore.undo-forgotten",
    "snapshot.restore.rebuilt-conversation",
    "snapshot.restore.put-back",
    ...withPrefix("snapshot.restore.to-"),
  ]) {
    it(`at ${point}: repeated, it restores the cell`, async () => {
      const remove = async (home: string) => fs.rmSync(openMission(home, "m").cellRoot, { recursive: true });
      await kill(
        point,
        ["restore", first],
        async (home) => {
          await restoreCell(openMission(home, "m"), { checkpoint: first });
          expect(checkCell(home)).toBe("new");
          expect(siblings(home)).toEqual([]);
        },
        remove,
      );
    });
  }
});

describe.concurrent("a restore into a directory killed with SIGKILL", () => {
  for (const point of withPrefix("snapshot.restore.to-")) {
    it(`at ${point}: repeated, it fills the same directory`, async () => {
      await kill(point, ["to", first], async (home) => {
        const directory = join(home, "to");
        const finished = point.endsWith(".to-done");
        if (!finished) await restoreTo(openMission(home, "m"), { checkpoint: first, directory });
        expect(differences(after, recordTree(directory))).toEqual([]);
        expect(checkCell(home)).toBe("old");
      });
    });
  }
});

describe.concurrent("an undo killed with SIGKILL", () => {
  const restored = async (home: string) => {
    await restoreCell(openMission(home, "m"), { checkpoint: first });
  };
  for (const point of [
    ...withPrefix("snapshot.undo."),
    "snapshot.restore.journalled",
    "snapshot.restore.placed",
  ]) {
    it(`at ${point}: repeated, it has either undone or redone the restore`, async () => {
      await kill(
        point,
        ["undo"],
        async (home) => {
          await takeCheckpoint(openMission(home, "m"), { reason: "manual" });
          const seen = recordTree(openMission(home, "m").cellRoot);
          const done = differences(after, seen).length > 0;
          const database = join(openMission(home, "m").cellRoot, "state/db");
          expect(countRows(database)).toBe(done ? 5 : 3);
          await undoRestore(openMission(home, "m"));
          expect(countRows(database)).toBe(done ? 3 : 5);
        },
        restored,
      );
    });
  }
});

describe.concurrent("a fork killed with SIGKILL", () => {
  for (const point of withPrefix("snapshot.fork.")) {
    it(`at ${point}: repeated, it creates the mission`, async () => {
      await kill(point, ["fork", first], async (home) => {
        const fork = () => openMission(home, "forked");
        // After the last rename the mission is there, and a second fork of that name is refused.
        if (fs.existsSync(fork().cellRoot)) {
          await expect(forkMission(openMission(home, "m"), fork(), { at: first })).rejects.toThrow(
            "already exists",
          );
        } else await forkMission(openMission(home, "m"), fork(), { at: first });
        expect(checkCell(home)).toBe("old");
        const changed = differences(after, recordTree(fork().cellRoot)).map((line) => line.split(":")[0]!);
        const own = [
          ".",
          "config",
          "config/cell.json",
          "meta",
          "meta/mission.json",
          "state",
          "state/heartbeat.json",
        ];
        expect(changed.filter((name) => !own.includes(name))).toEqual([]);
        expect(
          fork()
            .vault.list()
            .map(({ reason }) => reason),
        ).toEqual(["fork"]);
        // That of the killed fork is gone.
        for (const file of [fork().effects.file, vaultHistory(fork().vault.root)])
          expect(fs.readFileSync(file, "utf8").match(/"forked"/g)).toHaveLength(1);
        const proof = await drill(fork());
        expect(proof.differences).toEqual([]);
        const { changes } = await restoreCell(fork(), {});
        expect(changes.changed).toEqual([]);
      });
    });
  }
});

describe.concurrent("a drill killed with SIGKILL", () => {
  for (const point of withPrefix("snapshot.drill.")) {
    it(`at ${point}: repeated, it proves the checkpoint and leaves nothing behind`, async () => {
      await kill(point, ["drill", first], async (home) => {
        const result = await drill(openMission(home, "m"), { checkpoint: first });
        expect(result.differences).toEqual([]);
        expect(
          openMission(home, "m")
            .vault.list()
            .map(({ provenAtMs }) => provenAtMs !== null),
        ).toEqual([true]);
        expect(siblings(home)).toEqual([]);
        expect(checkCell(home)).toBe("old");
      });
    });
  }
});

it("finds crash points", () => {
  expect(withPrefix("snapshot.restore.").length).toBeGreaterThanOrEqual(15);
});
