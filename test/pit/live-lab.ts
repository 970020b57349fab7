// Live points in this process: a real cell, the real watcher and the real capture from its sets. Every point is compared with the cell
// by restoring it and listing both with list_tree.py, which shares no code with Lazarus.
import { execFileSync } from "node:child_process";
import { mkdtempSync, realpathSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig } from "../../src/cell/config.ts";
import { initCell } from "../../src/cell/init.ts";
import { type MissionId, parseMissionId } from "../../src/cell/mission-id.ts";
import { openPitContext, type PitContext } from "../../src/pit/context.ts";
import { createLivePoints, type LivePoints } from "../../src/pit/live/live-points.ts";
import { openTreeWatcher, type TakenPaths } from "../../src/pit/watch/tree-watcher.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { removeTree } from "../snapshot/lab.ts";
import { listTree } from "../snapshot/list-tree.ts";

export interface LiveLab extends AsyncDisposable {
  readonly context: PitContext;
  readonly mission: MissionId;
  readonly live: LivePoints;
  readonly directory: string;
  readonly cell: string;
  readonly worktree: string;
  /** Next to the cell. */
  readonly outside: string;
  /** What the watcher reported for the last point; unknown: it walked. */
  readonly lastSet: TakenPaths;
  /** Sets the wall clock so much ahead. */
  setClock(aheadMs: number): void;
  /** Takes a live point; an audit walks the cell. */
  point(options?: { readonly isAudit?: boolean }): Promise<void>;
  /** Lines of the worktree that differ between the cell and its newest point, as the lister sees them. */
  differences(): Promise<string[]>;
}

/** Creates files in a burst, by another process, 100 in each directory: all are below `many`. */
export function createBurst(worktree: string, files: number): void {
  const script = `for (let i = 0; i < ${files}; i += 1) {
    if (i % 100 === 0) fs.mkdirSync("many/" + i, { recursive: true });
    fs.writeFileSync("many/" + (i - (i % 100)) + "/" + i, "" + i);
  }`;
  execFileSync(process.execPath, ["-e", script], { cwd: worktree });
}

const M1 = parseMissionId("m1");

/** The first point has been taken: the next one is taken from a set. `existing`: the directory of another lab, which removes it. */
export async function createLiveLab(
  prepare: (worktree: string) => void = () => {},
  existing?: string,
): Promise<LiveLab> {
  const directory = existing ?? realpathSync(mkdtempSync(join(tmpdir(), "lazarus-live-")));
  const home = join(directory, "home");
  let aheadMs = 0;
  const { clock } = systemMachine;
  const context = openPitContext({
    machine: { ...systemMachine, clock: { ...clock, nowMs: () => clock.nowMs() + aheadMs } },
    effective: resolveConfig({ env: { LAZARUS_HOME: home }, cwd: directory, isRoot: false }, undefined, {}),
    version: "1.2.3",
    environment: { LAZARUS_HOME: home },
    cwd: directory,
    log: () => {},
    warn: () => {},
  });
  initCell(context.machine, context.config, M1);
  const cell = join(context.config.missions_root, "m1");
  const worktree = join(cell, "worktree");
  prepare(worktree);
  const real = openTreeWatcher({ cookies: join(directory, "cookies") });
  let lastSet: TakenPaths | undefined;
  const live = createLivePoints(context, {
    add: (key, tree) => real.add(key, tree),
    remove: (key) => real.remove(key),
    read: (key) => real.read(key),
    async take(key) {
      lastSet = await real.take(key);
      return lastSet;
    },
    putBack: (key, taken) => real.putBack(key, taken),
    [Symbol.asyncDispose]: () => real[Symbol.asyncDispose](),
  });
  let restores = 0;
  const lab: LiveLab = {
    context,
    mission: M1,
    live,
    directory,
    cell,
    worktree,
    outside: directory,
    get lastSet() {
      return lastSet!;
    },
    setClock(ms) {
      aheadMs = ms;
    },
    async point({ isAudit = false } = {}) {
      const limits = { withinMs: 1000, quietMs: 0, share: 1, auditMs: isAudit ? 0 : 3_600_000 };
      live.protect([{ mission: M1, agent: null, limits }], clock.monotonicMs());
      live.due(clock.monotonicMs());
      await live.take(M1);
    },
    async differences() {
      restores += 1;
      const target = join(directory, `restored-${restores}`);
      const mission = context.openMission(M1);
      // By its place in the index: "latest" goes by the time, and a test may set the clock back.
      await restoreTo(mission, { checkpoint: mission.vault.list().at(-1)!.id, directory: target });
      const [saved, now] = [join(target, "worktree"), worktree].map((root) => new Set(listTree(root)));
      removeTree(target);
      return [...saved!]
        .filter((line) => !now!.has(line))
        .concat([...now!].filter((line) => !saved!.has(line)));
    },
    async [Symbol.asyncDispose]() {
      await live[Symbol.asyncDispose]();
      context[Symbol.dispose]();
      if (existing === undefined) removeTree(directory);
    },
  };
  await lab.point();
  return lab;
}
