// A cell and its vault in a temporary directory, for tests of checkpoints on the real disk. Trees are compared by
// list_tree.py, which shares no code with Lazarus.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, realpathSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { loadConfig } from "../../src/cell/config.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { describeWorktree, writeWorktreeRecord } from "../../src/cell/worktree-record.ts";
import { systemClock } from "../../src/platform/clock.ts";
import { type Machine, systemMachine } from "../../src/platform/machine.ts";
import { type MissionContext, openMissionContext } from "../../src/snapshot/mission-context.ts";
import { diskPath } from "../../src/snapshot/model/cell-tree.ts";
import type { Entry } from "../../src/snapshot/model/entry.ts";
import {
  type CheckpointOptions,
  type CheckpointResult,
  takeCheckpoint,
} from "../../src/snapshot/operations/checkpoint.ts";
import { restoreTo } from "../../src/snapshot/operations/restore-into.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { type Contents, openContents } from "../../src/snapshot/vault/contents.ts";
import { readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { listTree } from "./list-tree.ts";

export interface LabOptions {
  readonly mission?: string;
  /** The config file: `snapshot`, `secrets`, `retention`. */
  readonly document?: Record<string, unknown>;
  readonly machine?: Partial<Machine>;
  /**
   * How far the wall clock runs ahead of the disk's. 10 s makes every file old at the next scan, so that stat alone
   * decides; 0 leaves files of the last two seconds racy.
   */
  readonly aheadMs?: number;
  readonly environment?: Record<string, string | undefined>;
  /** The home of an existing lab to share. */
  readonly home?: string;
  /** A directory in which the worktree is made, outside the cell. */
  readonly outside?: string;
}

export interface Lab extends Disposable {
  readonly directory: string;
  readonly home: string;
  readonly context: MissionContext;
  readonly cell: string;
  readonly worktree: string;
  /** The same lab with other settings. */
  with(options: LabOptions): Lab;
  checkpoint(options?: Partial<CheckpointOptions>): Promise<CheckpointResult>;
  /** Restores a checkpoint into a new directory and returns it. */
  restored(id: string): Promise<string>;
  /** Opens a checkpoint for reading; default `latest`. */
  open(id?: string): Contents;
  listing(id?: string): Map<string, Entry>;
  text(path: string, id?: string): string;
  /** Fails unless the vault passes `verify --deep`. */
  verify(): Promise<void>;
}

export const OLD_MS = 10_000;

export function createLab(options: LabOptions = {}): Lab {
  const own = options.home === undefined;
  const directory = own
    ? realpathSync(mkdtempSync(join(tmpdir(), "lazarus-lab-")))
    : join(options.home!, "..");
  const home = options.home ?? join(directory, "home");
  mkdirSync(home, { recursive: true });
  const effective = loadConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false });
  const clock = {
    ...systemClock,
    nowMs: () => systemClock.nowMs() + (options.aheadMs ?? OLD_MS),
  };
  const mission = parseMissionId(options.mission ?? "m");
  if (own && options.outside !== undefined) {
    const path = join(options.outside, "worktree");
    mkdirSync(path, { recursive: true });
    const record = describeWorktree(mission, realpathSync(path), 0);
    writeWorktreeRecord(systemMachine, effective.config.missions_root, record);
  }
  const context = openMissionContext(
    { ...systemMachine, clock, ...options.machine },
    { ...effective, document: options.document ?? {} },
    mission,
    { version: "0", environment: options.environment ?? { PATH: process.env.PATH, HOME: directory } },
  );
  const cell = context.cellRoot;
  const worktree = diskPath(context.tree, "worktree");
  if (own) mkdirSync(join(cell, "worktree"), { recursive: true });
  let restores = 0;
  const refOf = (id?: string) => {
    const refs = context.vault.list();
    return id === undefined ? refs.at(-1)! : refs.find((ref) => ref.id === id)!;
  };
  const lab: Lab = {
    directory,
    home,
    context,
    cell,
    worktree,
    with: (other) => createLab({ ...options, ...other, home }),
    checkpoint: (capture = {}) => takeCheckpoint(context, { reason: "manual", ...capture }),
    async restored(id) {
      restores += 1;
      const target = join(directory, `restored-${id}-${restores}`);
      const { flaws } = await restoreTo(context, { checkpoint: id, directory: target });
      if (flaws.length > 0) throw new Error(`not restored exactly: ${JSON.stringify(flaws)}`);
      return target;
    },
    open: (id) => openContents(context.vault, readCheckpoint(context.vault, refOf(id)).layers),
    listing(id) {
      using contents = lab.open(id);
      return new Map(contents.listing);
    },
    text(path, id) {
      using contents = lab.open(id);
      const chunks: Buffer[] = [];
      const entry = contents.listing.get(path);
      if (entry === undefined) throw new Error(`${path} is not in the checkpoint`);
      contents.read(entry, (chunk) => chunks.push(Buffer.from(chunk)));
      return Buffer.concat(chunks).toString("latin1");
    },
    async verify() {
      const { findings } = await verifyVault(context.vault, { deep: true });
      if (findings.length > 0) throw new Error(`the vault is damaged: ${JSON.stringify(findings)}`);
    },
    [Symbol.dispose]() {
      if (own) removeTree(directory);
      if (own && options.outside !== undefined) removeTree(options.outside);
    },
  };
  return lab;
}

/** Also removes directories that their owner may not enter. */
export function removeTree(directory: string): void {
  try {
    rmSync(directory, { recursive: true, force: true });
  } catch {
    spawnSync("chmod", ["-R", "u+rwX", directory], { stdio: "ignore" });
    rmSync(directory, { recursive: true, force: true });
  }
}

/** Cell and worktree as one tree, wherever the worktree is. */
export function listCell({ cell, worktree }: Lab, ...skip: string[]): string[] {
  return listTree(cell, ...skip, `worktree=${worktree}`);
}

/** Name and size of every file of a vault. */
export function vaultFiles(root: string): Map<string, number> {
  const files = new Map<string, number>();
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name);
    if (entry.isFile()) files.set(path.slice(root.length + 1), statSync(path).size);
  }
  return files;
}
