// An empty directory for each restore that is measured. ext4 searches the inodes that an earlier `rm -rf` freed, which made
// the second restore into the same file system slower than the first, for us and for every peer. As root each turn gets a
// new file system in a loop image; otherwise nothing is deleted before the end.
import { spawnSync } from "node:child_process";
import { mkdirSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Sparse: takes only the space that is written. */
const IMAGE_BYTES = 8 * 1024 ** 3;

export interface FreshDisk extends Disposable {
  /** What the results should say about the target. */
  readonly about: string;
  /** A path that does not exist yet, on an empty file system where that is possible. */
  path(): string;
}

export function openFreshDisk(work: string): FreshDisk {
  const image = join(work, "disk.img");
  const mountPoint = join(work, "disk");
  const format = () => {
    unmount(mountPoint);
    writeFileSync(image, "");
    truncateSync(image, IMAGE_BYTES);
    return run("mkfs.ext4", "-q", "-F", image) && run("mount", "-o", "loop", image, mountPoint);
  };
  mkdirSync(mountPoint, { recursive: true });
  if (process.getuid?.() === 0 && format())
    return {
      about: "Each full restore goes to a new ext4 file system in a loop image.",
      path() {
        if (!format()) throw new Error(`cannot mount a new file system at ${mountPoint}`);
        return join(mountPoint, "restored");
      },
      [Symbol.dispose]() {
        unmount(mountPoint);
        rmSync(image, { force: true });
      },
    };
  let count = 0;
  return {
    about:
      "Each full restore goes to a new directory of the same file system, and all are deleted at the end: only root can mount a new file system per turn.",
    path: () => join(mountPoint, `restored-${count++}`),
    [Symbol.dispose]: () => rmSync(mountPoint, { recursive: true, force: true }),
  };
}

/** Lazily if something, such as a file indexer, is still looking at it. */
function unmount(mountPoint: string): void {
  if (!run("umount", mountPoint)) run("umount", "-l", mountPoint);
}

function run(program: string, ...args: string[]): boolean {
  return spawnSync(program, args, { stdio: "ignore" }).status === 0;
}
