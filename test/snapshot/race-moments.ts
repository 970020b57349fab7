// Exact moments of a capture at which a test changes the cell: while the walk reads a directory, after the walk, and after
// everything was packed.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { type Disk, systemDisk } from "../../src/platform/disk.ts";

export interface Moments {
  /** The walk is complete; nothing was packed yet. */
  readonly beforePacking?: () => void;
  /** The first layer is complete. */
  readonly afterPacking?: () => void;
}

/** A disk that calls each moment once. */
export function racingDisk(moments: Moments): Disk {
  const once = (act: (() => void) | undefined) => {
    let done = act === undefined;
    return () => {
      if (done) return;
      done = true;
      act!();
    };
  };
  const before = once(moments.beforePacking);
  const after = once(moments.afterPacking);
  let layer = -1;
  return {
    ...systemDisk,
    create(path, mode) {
      const isLayer = /\/scratch\/(layer|local)$/.test(String(path));
      if (isLayer) before();
      const fd = systemDisk.create(path, mode);
      if (isLayer) layer = fd;
      return fd;
    },
    fsync(fd) {
      if (fd === layer) after();
      systemDisk.fsync(fd);
    },
  };
}

/** Runs `use`, and calls `act` once, right before the directory is read. */
export function beforeReading<T>(directory: string, use: () => Promise<T>, act: () => void): Promise<T> {
  const { ino } = fs.statSync(directory);
  return beforeCall("readdirSync", (path) => fs.statSync(path).ino === ino, use, act);
}

/** Runs `use`, and calls `act` once, right before the stat of the path is taken. */
export function beforeStat<T>(path: string, use: () => Promise<T>, act: () => void): Promise<T> {
  return beforeCall("lstatSync", (each) => each === path, use, act);
}

async function beforeCall<T>(
  name: "readdirSync" | "lstatSync",
  matches: (path: string) => boolean,
  use: () => Promise<T>,
  act: () => void,
): Promise<T> {
  const original = fs[name] as (...args: unknown[]) => unknown;
  let done = false;
  const wrapped = (path: string | Buffer, ...rest: unknown[]) => {
    if (!done && matches(String(path))) {
      done = true;
      act();
    }
    return original(path, ...rest);
  };
  Object.assign(fs, { [name]: wrapped });
  syncBuiltinESMExports();
  try {
    const result = await use();
    if (!done) throw new Error(`there was no such call of ${name}`);
    return result;
  } finally {
    Object.assign(fs, { [name]: original });
    syncBuiltinESMExports();
  }
}
