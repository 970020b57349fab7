// Sets damaged blobs aside, inside the vault: the next checkpoint then stores everything again, and the evidence is kept until
// no checkpoint needs the blob. Takes no lock: a blob that a writer replaces at the same moment is put back.
import { createHash } from "node:crypto";
import { closeSync, existsSync, openSync, readdirSync, readSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Disk } from "../../platform/disk.ts";
import { makeDirectory } from "../../platform/durable.ts";
import { LazarusError, systemErrorCode } from "../../platform/errors.ts";

export interface Quarantine {
  /** Sets a blob aside if it does not match its digest; false for one that is intact, missing or cannot be moved. */
  add(digest: string): boolean;
  /** Undefined for a blob that is not here. */
  find(digest: string): string | undefined;
  list(): string[];
  remove(digest: string): void;
}

const PREFIX = "sha256:";
const CHUNK_BYTES = 1 << 20;

export function createQuarantine(
  disk: Disk,
  directory: string,
  blobPath: (digest: string) => string,
): Quarantine {
  const placeOf = (digest: string) => join(directory, digest.slice(PREFIX.length));
  const add = (digest: string) => {
    const path = blobPath(digest);
    if (!existsSync(path) || hashFile(path) === digest) return false;
    const aside = placeOf(digest);
    makeDirectory(disk, directory);
    disk.rename(path, aside);
    if (hashFile(aside) === digest) {
      disk.rename(aside, path);
      return false;
    }
    disk.fsyncDirectory(directory);
    disk.fsyncDirectory(dirname(path));
    return true;
  };
  return {
    add(digest) {
      try {
        return add(digest);
      } catch (error) {
        // A vault that cannot be written or read is reported by the operation that found the damage.
        if (systemErrorCode(error) === undefined) throw error;
        return false;
      }
    },
    find: (digest) => (existsSync(placeOf(digest)) ? placeOf(digest) : undefined),
    list() {
      if (!existsSync(directory)) return [];
      return readdirSync(directory)
        .filter((name) => /^[0-9a-f]{64}$/.test(name))
        .map((name) => PREFIX + name);
    },
    remove: (digest) => disk.unlink(placeOf(digest)),
  };
}

function hashFile(path: string): string {
  const hash = createHash("sha256");
  const fd = openSync(path, "r");
  try {
    const buffer = Buffer.allocUnsafe(CHUNK_BYTES);
    for (let length = readSync(fd, buffer); length > 0; length = readSync(fd, buffer))
      hash.update(buffer.subarray(0, length));
  } finally {
    closeSync(fd);
  }
  return `${PREFIX}${hash.digest("hex")}`;
}

/** Sets aside the blob in which `error` found damage. */
export function quarantineDamage({ quarantine }: { readonly quarantine: Quarantine }, error: unknown): void {
  if (!(error instanceof LazarusError) || error.kind !== "damaged") return;
  for (const digest of [error.details.layer, error.details.blob])
    if (typeof digest === "string") quarantine.add(digest);
}
