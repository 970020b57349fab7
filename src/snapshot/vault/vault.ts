// A vault: one OCI image layout per mission. A checkpoint exists if and only if index.json names it, and everything it
// needs was durable before that (INV-2). Blobs are written to a temporary file, synced and renamed to their digest;
// publishing syncs their names, then replaces the index. Reads verify the digest. A damaged blob is set aside, so that nothing is built on it and its intact parts can still be read.
// Everything outside `lazarus/` is standard OCI.
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { crashPoint } from "../../platform/crash-point.ts";
import type { Disk } from "../../platform/disk.ts";
import { createFile, makeDirectory, placeFile, replaceFile } from "../../platform/durable.ts";
import { asLazarusError, LazarusError, systemErrorCode } from "../../platform/errors.ts";
import { acquireLock, type Lock } from "../../platform/lock.ts";
import type { Machine } from "../../platform/machine.ts";
import { keepReserve } from "../../platform/reserve.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { readIndexFile, rememberIndex } from "./index-file.ts";
import { damagedIndex, encodeIndex } from "./index-json.ts";
import { createQuarantine, type Quarantine } from "./quarantine.ts";

/** The checkpoints of one mission. */
export interface Vault {
  readonly mission: string;
  readonly root: string;
  /** Scratch directory on the vault's file system; emptied whenever the lock is taken. */
  readonly scratch: string;
  /** Journal of a restore in progress. */
  readonly journalFile: string;
  /** Space for a smaller index when the disk is full. */
  readonly reserveFile: string;
  /** Makes the reserve, if there is room for it. */
  keepReserve(): void;
  /** All checkpoints, oldest first. A vault that does not exist has none; one without its index is damaged. */
  list(): CheckpointRef[];
  /** Makes the names of all blobs durable, then replaces the index: the only write that creates or removes checkpoints. */
  publish(refs: readonly CheckpointRef[]): void;
  /** Success means that the content is stored, not that this call stored it; its name is durable once it is published. */
  put(bytes: Uint8Array): { digest: string; size: number };
  /** Moves a synced file from scratch to the blob of that digest; its name is durable once it is published. */
  adopt(file: string, digest: string): void;
  /** The bytes of a blob, verified against its digest. */
  read(digest: string): Buffer;
  blobPath(digest: string): string;
  /** The file of a blob, even when it was set aside. */
  findBlob(digest: string): string;
  has(digest: string): boolean;
  blobs(): { digest: string; size: number }[];
  remove(digest: string): void;
  /** Damaged blobs that were set aside. */
  readonly quarantine: Quarantine;
  /** One writer at a time. Creates the layout if necessary. */
  lock(purpose: string): Promise<Lock>;
}

const LOCK_WAIT_MS = 10 * 60 * 1000;
const RESERVE_STEP_BYTES = 16 << 10;
const LOCK_ATTEMPTS = 3;
const DIGEST = /^sha256:[0-9a-f]{64}$/;
const LAYOUT = `${JSON.stringify({ imageLayoutVersion: "1.0.0" })}\n`;

export function openVault(machine: Machine, vaultRoot: string, mission: string): Vault {
  const root = join(vaultRoot, mission);
  const blobDirectory = join(root, "blobs", "sha256");
  const own = join(root, "lazarus");
  const scratch = join(own, "scratch");
  const indexFile = join(root, "index.json");
  const failed = (action: string, error: unknown) =>
    asLazarusError(error, `${action} the vault ${root}`, root);
  const writing = (work: () => void) => {
    try {
      work();
    } catch (error) {
      throw failed("writing", error);
    }
  };

  const blobPath = (digest: string) => {
    if (!DIGEST.test(digest))
      throw new LazarusError("VAULT_DAMAGED", `${JSON.stringify(digest)} is not a digest`);
    return join(blobDirectory, digest.slice("sha256:".length));
  };

  const has = (digest: string) => existsSync(blobPath(digest));
  const quarantine = createQuarantine(machine.disk, join(own, "quarantine"), blobPath);

  const blobNames = () =>
    existsSync(blobDirectory) ? readdirSync(blobDirectory).filter((name) => /^[0-9a-f]{64}$/.test(name)) : [];

  return {
    mission,
    root,
    scratch,
    journalFile: join(own, "restore-journal.json"),
    reserveFile: join(own, "reserve"),
    keepReserve: () => keepReserve(machine.disk, join(own, "reserve"), reserveBytes(indexFile)),
    blobPath,
    findBlob: (digest) => (has(digest) ? blobPath(digest) : (quarantine.find(digest) ?? blobPath(digest))),
    quarantine,
    has,
    list() {
      try {
        return readIndexFile(indexFile);
      } catch (error) {
        if (error instanceof LazarusError) throw error;
        if (systemErrorCode(error) !== "ENOENT") throw failed("reading", error);
        if (blobNames().length === 0) return [];
        throw damagedIndex(indexFile, "it is missing, although the vault has blobs");
      }
    },
    publish(refs) {
      const text = encodeIndex(refs);
      crashPoint("snapshot.publish.before-index");
      writing(() => {
        machine.disk.fsyncDirectory(blobDirectory);
        crashPoint("snapshot.publish.blobs-synced");
        replaceFile(machine.disk, indexFile, text);
      });
      rememberIndex(indexFile, text, refs);
      crashPoint("snapshot.publish.after-index");
    },
    put(bytes) {
      const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
      const path = blobPath(digest);
      writing(() => {
        // A blob with this name may be damaged, so its content is compared.
        if (!existsSync(path) || !readFileSync(path).equals(bytes)) placeFile(machine.disk, path, bytes);
      });
      return { digest, size: bytes.length };
    },
    adopt(file, digest) {
      writing(() => machine.disk.rename(file, blobPath(digest)));
    },
    read(digest) {
      return readBlob(blobPath(digest), digest, root, mission);
    },
    blobs() {
      return blobNames().map((name) => ({
        digest: `sha256:${name}`,
        size: statSync(join(blobDirectory, name)).size,
      }));
    },
    remove(digest) {
      machine.disk.unlink(blobPath(digest));
    },
    async lock(purpose) {
      let lock: Lock;
      try {
        lock = await takeLock(machine, own, purpose);
      } catch (error) {
        throw failed("locking", error);
      }
      try {
        makeDirectory(machine.disk, blobDirectory);
        prepareScratch(machine.disk, scratch);
        prepareLayout(machine.disk, root, blobNames().length === 0);
      } catch (error) {
        lock[Symbol.dispose]();
        throw failed("preparing", error);
      }
      return lock;
    },
  };
}

/** Usually it is empty: removing and recreating it would cost every live point two fsyncs. */
function prepareScratch(disk: Disk, scratch: string): void {
  makeDirectory(disk, scratch);
  for (const name of readdirSync(scratch)) rmSync(join(scratch, name), { recursive: true, force: true });
}

/** Only before the first blob: a missing index in a vault with blobs was lost and must not be replaced. */
function prepareLayout(disk: Disk, root: string, isEmpty: boolean): void {
  const index = join(root, "index.json");
  const layout = join(root, "oci-layout");
  if (isEmpty && !existsSync(index)) replaceFile(disk, index, encodeIndex([]));
  if (!existsSync(layout)) createFile(disk, layout, LAYOUT);
}

/** Grows in steps, with one extra step for directories. */
function reserveBytes(indexFile: string): number {
  const index = statSync(indexFile, { throwIfNoEntry: false })?.size ?? 0;
  return Math.ceil(index / RESERVE_STEP_BYTES + 1) * RESERVE_STEP_BYTES;
}

async function takeLock(machine: Machine, directory: string, purpose: string): Promise<Lock> {
  for (let attempt = 1; ; attempt += 1) {
    makeDirectory(machine.disk, directory);
    try {
      return await acquireLock(machine, join(directory, "lock"), { purpose, waitMs: LOCK_WAIT_MS });
    } catch (error) {
      // Gone when the last holder removed a vault that it had made and not used.
      if (systemErrorCode(error) !== "ENOENT" || attempt === LOCK_ATTEMPTS) throw error;
    }
  }
}

function readBlob(path: string, digest: string, root: string, mission: string): Buffer {
  const options = { hint: `lazarus verify ${mission}`, details: { blob: digest } };
  let bytes: Buffer;
  try {
    bytes = readFileSync(path);
  } catch (error) {
    const message = `blob ${digest} is missing from the vault ${root}`;
    throw new LazarusError("VAULT_DAMAGED", message, { ...options, cause: error });
  }
  const found = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  if (found === digest) return bytes;
  const message = `blob ${digest} in the vault ${root} is damaged: it hashes to ${found}`;
  throw new LazarusError("VAULT_DAMAGED", message, options);
}
