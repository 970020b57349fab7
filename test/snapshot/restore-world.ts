// A mission in a temporary home, and an independent tree listing: plain lstat, readlink and digests.
import { createHash } from "node:crypto";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { resolveConfig } from "../../src/cell/config.ts";
import { initCell } from "../../src/cell/init.ts";
import { parseMissionId } from "../../src/cell/mission-id.ts";
import { type Machine, systemMachine } from "../../src/platform/machine.ts";
import { type MissionContext, openMissionContext } from "../../src/snapshot/mission-context.ts";
import { diskPath } from "../../src/snapshot/model/cell-tree.ts";
import { type CheckpointResult, takeCheckpoint } from "../../src/snapshot/operations/checkpoint.ts";
import { protectDirectory } from "../../src/snapshot/operations/protect.ts";

export interface MissionContextOptions {
  /** The config file. */
  readonly document?: Record<string, unknown>;
  readonly machine?: Machine;
}

/** The context of a mission in a home, whether or not the mission exists. */
export function openMission(
  home: string,
  mission: string,
  options: MissionContextOptions = {},
): MissionContext {
  const environment = { env: { LAZARUS_HOME: home, HOME: home }, cwd: home, isRoot: false };
  const effective = resolveConfig(environment, undefined, options.document ?? {});
  return openMissionContext(options.machine ?? systemMachine, effective, parseMissionId(mission), {
    version: "test",
    environment: { PATH: process.env.PATH, HOME: home },
  });
}

export interface World extends Disposable {
  readonly directory: string;
  readonly context: MissionContext;
  readonly cell: string;
  checkpoint(message?: string): Promise<CheckpointResult>;
  path(name: string): string;
  write(name: string, content: string | Uint8Array): string;
  /** The mission as the next command opens it. */
  reopen(): MissionContext;
  /** Names next to the cell: leftovers of unfinished work, files moved aside, or other missions. */
  siblings(): string[];
}

const MISSION = "m";

/** A fresh home with one mission in it. */
export function createWorld(home?: string): World {
  const directory = home ?? fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "lazarus-restore-")));
  const context = openMission(directory, MISSION);
  initCell(systemMachine, context.config, context.mission);
  return worldOf(directory, context);
}

/** A fresh home whose mission has its worktree in a directory elsewhere, which is removed at the end. */
export async function createOutsideWorld(home: string | undefined, worktree: string): Promise<World> {
  const directory = home ?? fs.realpathSync(fs.mkdtempSync(join(tmpdir(), "lazarus-restore-")));
  fs.mkdirSync(worktree, { recursive: true });
  await protectDirectory(openMission(directory, MISSION), worktree, undefined);
  const world = worldOf(directory, openMission(directory, MISSION));
  return {
    ...world,
    [Symbol.dispose]() {
      world[Symbol.dispose]();
      fs.rmSync(worktree, { recursive: true, force: true });
    },
  };
}

/** A new directory on another file system than `tmpdir()`; undefined when this machine has none that can be used. */
export function otherFileSystem(): string | undefined {
  for (const place of ["/dev/shm", "/var/tmp", "/tmp"]) {
    try {
      if (fs.statSync(place).dev !== fs.statSync(tmpdir()).dev)
        return fs.realpathSync(fs.mkdtempSync(join(place, "lazarus-other-")));
    } catch {
      // Not there, or not ours to write to.
    }
  }
  return undefined;
}

function worldOf(directory: string, context: MissionContext): World {
  const path = (name: string) => diskPath(context.tree, name);
  return {
    directory,
    context,
    cell: context.cellRoot,
    reopen: () => openMission(directory, MISSION),
    checkpoint: (message) => takeCheckpoint(context, { reason: "manual", message: message ?? null }),
    path,
    write(name, content) {
      fs.mkdirSync(join(path(name), ".."), { recursive: true });
      fs.writeFileSync(path(name), content);
      return path(name);
    },
    siblings: () => fs.readdirSync(join(context.cellRoot, "..")).filter((name) => name !== MISSION),
    [Symbol.dispose]() {
      fs.rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Every path below `root` with lstat, link target and digest; names as latin1, so that bytes stay distinct. */
export function recordTree(root: string): Map<string, string> {
  const found = new Map<string, string>();
  const inodes = new Map<bigint, string>();
  const visit = (path: Buffer, name: string) => {
    const stat = fs.lstatSync(path, { bigint: true });
    const facts = [(stat.mode & 0o7777n).toString(8), `${stat.uid}:${stat.gid}`, String(stat.mtimeNs)];
    if (stat.isFile()) {
      if (stat.nlink > 1n) facts.push(`=${inodes.get(stat.ino) ?? name}`);
      if (!inodes.has(stat.ino)) inodes.set(stat.ino, name);
      facts.unshift(
        "file",
        String(stat.size),
        createHash("sha256").update(fs.readFileSync(path)).digest("hex"),
      );
    } else if (stat.isSymbolicLink()) {
      facts.shift();
      facts.unshift("link", fs.readlinkSync(path, { encoding: "buffer" }).toString("latin1"));
    } else facts.unshift(stat.isDirectory() ? "directory" : stat.isFIFO() ? "fifo" : "other");
    found.set(name, facts.join(" "));
    if (!stat.isDirectory()) return;
    for (const child of fs.readdirSync(path, { encoding: "buffer" }).sort(Buffer.compare)) {
      const text = child.toString("latin1");
      visit(Buffer.concat([path, Buffer.from("/"), child]), name === "." ? text : `${name}/${text}`);
    }
  };
  visit(Buffer.from(root), ".");
  return found;
}

/** Paths in which two recorded trees differ, with both sides. */
export function differences(a: Map<string, string>, b: Map<string, string>): string[] {
  const names = new Set([...a.keys(), ...b.keys()]);
  return [...names]
    .filter((name) => a.get(name) !== b.get(name))
    .map((name) => `${name}: ${a.get(name)} / ${b.get(name)}`);
}
