// The reserve of disk space, on a disk with a simulated number of free bytes.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createSystemError } from "../testing/system-error.ts";
import { type Disk, systemDisk } from "./disk.ts";
import { replaceFile } from "./durable.ts";
import { LazarusError } from "./errors.ts";
import { isDiskFull, keepReserve, withReserve } from "./reserve.ts";

let directory: string;
let reserve: string;
let capacity: number;
beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), "lazarus-reserve-"));
  reserve = join(directory, "reserve");
  capacity = 100_000;
});
afterEach(() => fs.rmSync(directory, { recursive: true }));

const used = () =>
  fs.readdirSync(directory).reduce((sum, name) => sum + fs.statSync(join(directory, name)).size, 0);
const full = () => createSystemError("ENOSPC", { syscall: "write" });
const disk: Disk = {
  ...systemDisk,
  write(fd, data) {
    if (used() + data.length > capacity) throw full();
    systemDisk.write(fd, data);
  },
};
const size = () => fs.statSync(reserve, { throwIfNoEntry: false })?.size;

describe("a reserve", () => {
  it("is made once, grows on demand, and is given up where there is no room", () => {
    keepReserve(disk, reserve, 50_000);
    const { ino } = fs.statSync(reserve);
    keepReserve(disk, reserve, 40_000);
    expect([fs.statSync(reserve).ino, size()]).toEqual([ino, 50_000]);
    keepReserve(disk, reserve, 90_000);
    expect(size()).toBe(90_000);
    keepReserve(disk, reserve, 200_000);
    expect(size()).toBeUndefined();
  });

  it.each([
    ["a function", () => replaceFile(disk, join(directory, "index"), "x".repeat(1000))],
    ["a promise", async () => replaceFile(disk, join(directory, "index"), "x".repeat(1000))],
  ])("lets %s write to a full disk", async (_, work) => {
    keepReserve(disk, reserve, 10_000);
    capacity = used();
    await withReserve<void | Promise<void>>(disk, reserve, work);
    expect(fs.readFileSync(join(directory, "index"), "utf8").length).toBe(1000);
    expect(size()).toBeUndefined();
  });

  it("does not hide other errors, nor a disk that is full without a reserve", async () => {
    keepReserve(disk, reserve, 10_000);
    const fail = (error: Error) => () => {
      throw error;
    };
    expect(() => withReserve(disk, reserve, fail(new Error("other")))).toThrow("other");
    expect(size()).toBe(10_000);
    let calls = 0;
    const count = async () => {
      calls += 1;
      throw new LazarusError("DISK_FULL", "still full");
    };
    await expect(withReserve(disk, reserve, count)).rejects.toThrow("still full");
    expect(calls).toBe(2);
    await expect(withReserve(disk, reserve, count)).rejects.toThrow("still full");
    expect(calls).toBe(3);
    expect([isDiskFull(full()), isDiskFull(new Error("x"))]).toEqual([true, false]);
  });
});
