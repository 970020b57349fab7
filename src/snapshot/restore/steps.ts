// The single steps of a restore in place. Each looks before it acts: it finds what the safety checkpoint saw and replaces
// it, finds its own work of an earlier attempt and leaves it, or finds something that is in no checkpoint and sets it
// aside (INV-3). None follows a link.
import {
  type BigIntStats,
  closeSync,
  constants,
  linkSync,
  lstatSync,
  mkdirSync,
  openSync,
  readSync,
  renameSync,
  rmdirSync,
  rmSync,
  unlinkSync,
} from "node:fs";
import { crashPoint } from "../../platform/crash-point.ts";
import { systemErrorCode } from "../../platform/errors.ts";
import type { Entry } from "../model/entry.ts";
import { joinPath, parentPath, systemPath } from "../model/path-bytes.ts";
import type { FileReader } from "../vault/layer-reader.ts";
import { type Hands, isDatabase, matches, typeOf } from "./cell-access.ts";
import { type Means, makeFile, makeSpecial, setMetadata } from "./make-path.ts";
import type { DirectoryStep, Fingerprint, Kept, PlaceStep, RemoveStep } from "./plan.ts";

const CHANGED_SINCE = "it changed after the safety checkpoint was taken";
const NOT_THROUGH_A_LINK = "a directory above it is a link or gone; nothing is written through links";

/** For what a path itself says no to. */
export class Refusal extends Error {}

/** Removes what the checkpoint does not have. `inTheWay`: something else of the checkpoint comes in its place. */
export function removeStep(hands: Hands, { path, was }: RemoveStep, kept: Kept[], inTheWay = false): void {
  const stat = hands.look(path);
  if (stat === undefined) return;
  if (!hands.reach(path)) {
    // Behind a file that an earlier attempt put there, there is nothing left to remove.
    if (inTheWay) return;
    throw new Refusal(NOT_THROUGH_A_LINK);
  }
  const type = typeOf(stat);
  if (type === undefined) {
    kept.push({ path, reason: "a socket or device" });
  } else if (type === "directory") {
    if (was.type === "directory") removeDirectory(hands, path, kept);
    else kept.push({ path, reason: "a directory that appeared after the safety checkpoint" });
  } else if (isKnown(hands, path, stat, was)) {
    unlinkSync(systemPath(hands.at(path)));
  } else if (!(inTheWay && was.type === "directory")) hands.setAside(path, CHANGED_SINCE);
}

function removeDirectory(hands: Hands, path: string, kept: Kept[]): void {
  try {
    rmdirSync(systemPath(hands.at(path)));
  } catch (error) {
    const code = systemErrorCode(error);
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    kept.push({ path, reason: "a directory with something in it that is in no checkpoint" });
  }
}

/** A directory that has to be there, made of nothing but real directories. */
export function directoryStep(hands: Hands, { entry, was }: DirectoryStep): void {
  const { path } = entry;
  if (path === ".") return;
  if (!hands.reach(path)) throw new Refusal(NOT_THROUGH_A_LINK);
  const stat = hands.look(path);
  if (stat?.isDirectory()) return;
  if (stat !== undefined) {
    if (isKnown(hands, path, stat, was)) unlinkSync(systemPath(hands.at(path)));
    else hands.setAside(path, CHANGED_SINCE);
  }
  mkdirSync(systemPath(hands.at(path)), 0o700);
  hands.forget();
}

/** Mode, owner, attributes and time, once nothing in it will change any more. */
export function finishDirectoryStep(hands: Hands, { entry, was, set }: DirectoryStep, means: Means): void {
  // One that is only above named paths keeps what it had, unless it was made for them.
  if (!set && was?.type === "directory") return;
  const stat = hands.look(entry.path);
  if (!stat?.isDirectory() && !(entry.path === "." && stat !== undefined)) return;
  if (entry.path !== "." && !hands.reach(entry.path)) throw new Refusal(NOT_THROUGH_A_LINK);
  setMetadata(hands.at(entry.path), entry, means, hands.flaws);
}

export function adjustStep(hands: Hands, entry: Entry, was: Fingerprint, means: Means): void {
  if (!hands.reach(entry.path)) throw new Refusal(NOT_THROUGH_A_LINK);
  const stat = hands.look(entry.path);
  const known = stat !== undefined && (isKnown(hands, entry.path, stat, was) || matches(stat, entry));
  if (!known) throw new Refusal(`${CHANGED_SINCE} and was left as it is`);
  setMetadata(hands.at(entry.path), entry, means, hands.flaws);
}

export interface Placing {
  /** Where it is staged. */
  readonly staged: string;
  readonly index: number;
  /** Path of the step whose inode it shares, when that is another one. */
  readonly leader: string | undefined;
  readonly means: Means;
  /** Files beside a database that belong to the one that is replaced. */
  readonly sidecars: readonly string[];
  readonly safetyMs: number;
  restage(): void;
}

/** Puts one staged thing into its place. */
export function placeStep(hands: Hands, { entry, was }: PlaceStep, placing: Placing): void {
  const { path } = entry;
  if (!hands.reach(path)) throw new Refusal(NOT_THROUGH_A_LINK);
  const stat = hands.look(path);
  if (lstatSync(placing.staged, { throwIfNoEntry: false }) === undefined) {
    // Staged things vanish only by being put into place.
    if (stat !== undefined && matches(stat, entry)) return;
    placing.restage();
  }
  if (stat?.isDirectory()) {
    if (was?.type !== "directory")
      hands.setAside(path, "a directory appeared here after the safety checkpoint");
    else removeObstacle(hands, path);
  } else if (stat !== undefined && !isKnown(hands, path, stat, was) && !matches(stat, entry)) {
    hands.setAside(path, was === null ? "it is in no checkpoint" : CHANGED_SINCE);
  }
  for (const sidecar of placing.sidecars) removeSidecar(hands, sidecar, path, placing.safetyMs);
  try {
    renameSync(placing.staged, systemPath(hands.at(path)));
  } catch (error) {
    if (systemErrorCode(error) !== "EXDEV") throw error;
    placeAcross(hands, entry, placing);
  }
}

function removeObstacle(hands: Hands, path: string): void {
  try {
    rmdirSync(systemPath(hands.at(path)));
  } catch (error) {
    const code = systemErrorCode(error);
    if (code !== "ENOTEMPTY" && code !== "EEXIST") throw error;
    throw new Refusal("a directory stands in its place, with something in it that is in no checkpoint");
  }
}

/** Another file system is mounted there: a copy beside the place, then the rename. */
function placeAcross(hands: Hands, entry: Entry, placing: Placing): void {
  const beside = hands.at(joinPath(parentPath(entry.path), `.lazarus-restore-${placing.index}.tmp`));
  rmSync(systemPath(beside), { force: true });
  if (!linkAcross(hands, placing.leader, beside)) {
    if (placing.leader !== undefined) {
      hands.flaws.push({
        path: entry.path,
        kind: "degraded",
        reason: "a hard link cannot span two file systems; it is a copy",
      });
    }
    if (entry.type === "file")
      makeFile(beside, entry, createCopyReader(placing.staged), placing.means, hands.flaws);
    else makeSpecial(beside, entry, placing.means, hands.flaws);
  }
  crashPoint("snapshot.restore.copied-across");
  renameSync(systemPath(beside), systemPath(hands.at(entry.path)));
  rmSync(placing.staged, { force: true });
}

function linkAcross(hands: Hands, leader: string | undefined, beside: string): boolean {
  if (leader === undefined) return false;
  try {
    linkSync(systemPath(hands.at(leader)), systemPath(beside));
    return true;
  } catch (error) {
    if (systemErrorCode(error) !== "EXDEV") throw error;
    return false;
  }
}

const COPY_BYTES = 1 << 20;

/** The data of a staged file, holes left out, as a vault would hand it over. It was verified when it was staged. */
function createCopyReader(file: string): FileReader {
  return {
    read(entry, use) {
      const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW);
      try {
        for (const [offset, length] of entry.extents ?? [[0, entry.size] as const]) {
          for (let at = offset; at < offset + length; ) {
            const buffer = Buffer.allocUnsafe(Math.min(COPY_BYTES, offset + length - at));
            const count = readSync(fd, buffer, 0, buffer.length, at);
            if (count === 0) throw new Refusal("what was staged for it has been cut short");
            use(buffer.subarray(0, count));
            at += count;
          }
        }
      } finally {
        closeSync(fd);
      }
    },
  };
}

/**
 * A write-ahead log is applied to whatever database stands beside it: that of the replaced one would ruin the restored
 * one. The safety checkpoint holds what was in it, unless it was written to since.
 */
export function removeSidecar(hands: Hands, sidecar: string, database: string, safetyMs: number): void {
  const stat = hands.look(sidecar);
  if (stat === undefined || !stat.isFile() || !isDatabase(hands.at(database))) return;
  const derived = sidecar.endsWith("-shm");
  if (derived || Number(stat.mtimeMs) < safetyMs) unlinkSync(systemPath(hands.at(sidecar)));
  else hands.setAside(sidecar, "it was written after the safety checkpoint was taken");
  crashPoint("snapshot.restore.sidecar-removed");
}

/** What the safety checkpoint saw. A database that was copied through SQLite has another size there than on disk. */
function isKnown(hands: Hands, path: string, stat: BigIntStats, was: Fingerprint | null): boolean {
  if (matches(stat, was)) return true;
  if (was?.type !== "file" || !stat.isFile()) return false;
  return matches(stat, { ...was, size: Number(stat.size) }) && isDatabase(hands.at(path));
}
