// Exact moments of a capture at which a test changes the cell: while the walk reads a directory, after the walk, and after
// everything was packed.
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { vi } from "vitest";
import { type Disk, systemDisk } from "../../src/platform/disk.ts";
import { Inspector } from "../../src/snapshot/scan/inspect.ts";

export interface Moments {
  /** The walk is complete; nothing was packed yet. */
  readonly beforePacking?: () => void;
  /** The first layer is complete. */
  readonly afterPacking?: () => void;
}

/** A disk that calls each moment once. */
export function racingDisk(moments: Moments): Disk {
  const before = once(() => moments.beforePacking?.());
  const after = once(() => moments.afterPacking?.());
  let layer = -1;
  return {
    ...systemDisk,
    create(path, mode) {
      const isLayer = /\/scratch\/(layer|local)$/.test(String(path));
      if (isLayer) before.arrive();
      const fd = systemDisk.create(path, mode);
      if (isLayer) layer = fd;
      return fd;
    },
    fsync(fd) {
      if (fd === layer) after.arrive();
      systemDisk.fsync(fd);
    },
  };
}

/** Runs `use`, and calls `act` once, right before the directory is read. */
export async function beforeReading<T>(
  directory: string,
  use: () => Promise<T>,
  act: () => void,
): Promise<T> {
  const { ino } = fs.statSync(directory);
  const original = fs.readdirSync as (...args: unknown[]) => unknown;
  const moment = once(act);
  const wrapped = (path: string | Buffer, ...rest: unknown[]) => {
    if (!moment.passed && fs.statSync(String(path)).ino === ino) moment.arrive();
    return original(path, ...rest);
  };
  Object.assign(fs, { readdirSync: wrapped });
  syncBuiltinESMExports();
  try {
    const result = await use();
    if (!moment.passed) throw new Error(`${directory} was not read`);
    return result;
  } finally {
    Object.assign(fs, { readdirSync: original });
    syncBuiltinESMExports();
  }
}

/** Runs `use`, and calls `act` once, right before the walk takes the stat of the path, which is relative to the cell. */
export async function beforeStat<T>(path: string, use: () => Promise<T>, act: () => void): Promise<T> {
  const moment = once(act);
  const original = Inspector.prototype.inspect;
  const inspect = vi.spyOn(Inspector.prototype, "inspect").mockImplementation(function (
    this: Inspector,
    each,
    ...rest
  ) {
    if (each === path) moment.arrive();
    return original.call(this, each, ...rest);
  });
  try {
    const result = await use();
    if (!moment.passed) throw new Error(`the walk took no stat of ${path}`);
    return result;
  } finally {
    inspect.mockRestore();
  }
}

interface Moment {
  readonly passed: boolean;
  arrive(): void;
}

function once(act: () => void): Moment {
  let passed = false;
  return {
    get passed() {
      return passed;
    },
    arrive() {
      if (passed) return;
      passed = true;
      act();
    },
  };
}
