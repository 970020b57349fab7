// The libc calls, checked through Node or read back. Where a file system lacks a feature, the test is skipped with a reason.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it, type TestContext } from "vitest";
import { systemErrorCode } from "./errors.ts";
import { type Posix, posixSupport } from "./posix.ts";

const support = posixSupport();
const posix = support.ok ? support.posix : (undefined as unknown as Posix);

let directory: string;
beforeEach(() => {
  directory = fs.mkdtempSync(join(tmpdir(), "lazarus-posix-"));
});
afterEach(() => fs.rmSync(directory, { recursive: true, force: true }));

function file(name: string, content: string | Buffer = ""): string {
  const path = join(directory, name);
  fs.writeFileSync(path, content);
  return path;
}

describe.skipIf(!support.ok)(`posix calls${support.ok ? "" : ` (${support.reason})`}`, () => {
  describe("setTimes", () => {
    const NS = 1_000_000_000n;
    // ext4 stores 1901 to 2446; every common file system stores this range.
    const time = fc.bigInt({ min: -2_000_000_000n * NS, max: 4_000_000_000n * NS });

    it("is exact to the nanosecond, even before 1970", () => {
      const path = file("f");
      fc.assert(
        fc.property(time, time, (atimeNs, mtimeNs) => {
          posix.setTimes(path, atimeNs, mtimeNs);
          const stat = fs.lstatSync(path, { bigint: true });
          expect([stat.atimeNs, stat.mtimeNs]).toEqual([atimeNs, mtimeNs]);
        }),
        { numRuns: 200 },
      );
    });

    it.skipIf(process.platform !== "linux")("agrees with stat(1) about times before 1970", () => {
      const path = file("f");
      for (const ns of [
        -1n,
        -999_999_999n,
        -1_000_000_000n,
        -1_000_000_001n,
        -1_500_000_000_123_456_789n,
        0n,
        1n,
      ]) {
        posix.setTimes(path, 0n, ns);
        const text = execFileSync("stat", ["-c", "%.9Y", path], { encoding: "utf8" }).trim();
        const [seconds = "", rest = ""] = text.replace("-", "").split(".");
        const magnitude = BigInt(seconds) * NS + BigInt(rest);
        expect(text.startsWith("-") ? -magnitude : magnitude, text).toBe(ns);
      }
    });

    it("sets the times of an open file", () => {
      const path = file("f");
      const fd = fs.openSync(path, "r+");
      fs.writeSync(fd, "more");
      posix.setOpenTimes(fd, -1n, 1_700_000_000_123_456_789n);
      fs.closeSync(fd);
      const { atimeNs, mtimeNs } = fs.statSync(path, { bigint: true });
      expect([atimeNs, mtimeNs]).toEqual([-1n, 1_700_000_000_123_456_789n]);
      expect(codeOf(() => posix.setOpenTimes(fd, 0n, 0n))).toBe("EBADF");
    });

    it("sets the times of a link, not of its target", () => {
      const target = file("target");
      posix.setTimes(target, 1n, 2n);
      const link = join(directory, "link");
      fs.symlinkSync("target", link);
      posix.setTimes(link, 5_000_000_003n, 7_000_000_004n);
      const dangling = join(directory, "dangling");
      fs.symlinkSync("nowhere", dangling);
      posix.setTimes(dangling, 1n, 9n);
      expect(fs.lstatSync(link, { bigint: true }).mtimeNs).toBe(7_000_000_004n);
      expect(fs.lstatSync(target, { bigint: true }).mtimeNs).toBe(2n);
      expect(fs.lstatSync(dangling, { bigint: true }).mtimeNs).toBe(9n);
    });

    it("fails with the system's code and the path", () => {
      const path = join(directory, "absent");
      expect(() => posix.setTimes(path, 0n, 0n)).toThrow(path);
      expect(codeOf(() => posix.setTimes(path, 0n, 0n))).toBe("ENOENT");
    });
  });

  describe("xattrs", () => {
    const attributes = (path: string) =>
      Object.fromEntries(posix.listXattrs(path).map(({ name, value }) => [name, value]));

    function needXattrs(context: TestContext): void {
      const code = codeOf(() => posix.setXattr(file("probe"), "user.probe", Buffer.from("x")));
      if (code !== undefined) context.skip(`the file system of ${tmpdir()} has no user xattrs (${code})`);
    }

    it("are read back unchanged, with any bytes", (context) => {
      needXattrs(context);
      const path = file("f");
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 500 }), (value) => {
          posix.setXattr(path, "user.value", value);
          expect(attributes(path)["user.value"]).toEqual(Buffer.from(value));
        }),
        { numRuns: 200 },
      );
    });

    it("may be empty, and part of a larger buffer", (context) => {
      needXattrs(context);
      const path = file("f");
      posix.setXattr(path, "user.empty", Buffer.alloc(0));
      posix.setXattr(path, "user.part", Buffer.from("0123456789").subarray(3, 6));
      posix.setXattr(path, "user.näme", Buffer.from([0, 255, 0]));
      expect(attributes(path)).toEqual({
        "user.empty": Buffer.alloc(0),
        "user.part": Buffer.from("345"),
        "user.näme": Buffer.from([0, 255, 0]),
      });
    });

    it("are replaced and removed", (context) => {
      needXattrs(context);
      const path = file("f");
      posix.setXattr(path, "user.a", Buffer.from("1"));
      posix.setXattr(path, "user.a", Buffer.from("2"));
      posix.setXattr(path, "user.b", Buffer.from("3"));
      posix.removeXattr(path, "user.b");
      expect(attributes(path)).toEqual({ "user.a": Buffer.from("2") });
      expect(codeOf(() => posix.removeXattr(path, "user.b"))).toMatch(/ENODATA|ENOATTR/);
    });

    it("are never read through a link", (context) => {
      needXattrs(context);
      const target = file("target");
      posix.setXattr(target, "user.a", Buffer.from("1"));
      const link = join(directory, "link");
      fs.symlinkSync("target", link);
      expect(attributes(link)).not.toHaveProperty("user.a");
    });

    it("are known to be absent from an open file", (context) => {
      needXattrs(context);
      const path = file("f");
      const fd = fs.openSync(path, "r");
      const before = posix.hasXattrs(fd);
      posix.setXattr(path, "user.a", Buffer.from("1"));
      expect(posix.hasXattrs(fd)).toBe(true);
      fs.closeSync(fd);
      // A security module may label every file.
      expect(before).toBe(posix.listXattrs(file("other")).length > 0);
    });

    it("are empty for a new file, and an error for a missing one", () => {
      expect(posix.listXattrs(file("f")).filter(({ name }) => name.startsWith("user."))).toEqual([]);
      expect(codeOf(() => posix.listXattrs(join(directory, "absent")))).toBe("ENOENT");
    });
  });

  it("makeFifo creates a FIFO with the given mode", () => {
    const path = join(directory, "pipe");
    posix.makeFifo(path, 0o600);
    const stat = fs.lstatSync(path);
    expect(stat.isFIFO()).toBe(true);
    expect(stat.mode & 0o777).toBe(0o600);
    expect(codeOf(() => posix.makeFifo(path, 0o600))).toBe("EEXIST");
  });

  it("syncFileSystem takes an open file or directory, and refuses a closed one", (context) => {
    const fd = fs.openSync(directory, "r");
    posix.syncFileSystem(fd);
    fs.closeSync(fd);
    if (process.platform === "darwin") context.skip("sync() of macOS takes no descriptor");
    expect(() => posix.syncFileSystem(-1)).toThrow(expect.objectContaining({ code: "EBADF" }));
  });

  describe("nextData", () => {
    const extents = (path: string) => {
      const fd = fs.openSync(path, "r");
      try {
        const found: { start: number; end: number }[] = [];
        for (let at = 0; ; ) {
          const next = posix.nextData(fd, at);
          if (next === undefined) return found;
          found.push(next);
          at = next.end;
        }
      } finally {
        fs.closeSync(fd);
      }
    };

    it("covers all data and skips holes", (context) => {
      const MIB = 1024 * 1024;
      const path = join(directory, "sparse");
      const fd = fs.openSync(path, "w");
      fs.writeSync(fd, "start", 0);
      fs.writeSync(fd, "middle", 3 * MIB);
      // Beyond 4 GiB, where a 32-bit offset would wrap.
      fs.writeSync(fd, "far", 5 * 1024 * MIB);
      fs.ftruncateSync(fd, 6 * 1024 * MIB);
      fs.closeSync(fd);
      const found = extents(path);
      const isData = (offset: number) => found.some(({ start, end }) => start <= offset && offset < end);
      expect([isData(0), isData(3 * MIB), isData(5 * 1024 * MIB)]).toEqual([true, true, true]);
      if (found.length === 1) context.skip(`the file system of ${tmpdir()} does not report holes`);
      expect([isData(2 * MIB), isData(4 * 1024 * MIB), isData(6 * 1024 * MIB - 1)]).toEqual([
        false,
        false,
        false,
      ]);
    });

    it("finds nothing in an empty file or after the end", () => {
      expect(extents(file("empty"))).toEqual([]);
      expect(extents(file("small", "abc"))).toEqual([{ start: 0, end: 3 }]);
    });
  });

  it("handles names that are not UTF-8", (context) => {
    const path = Buffer.concat([Buffer.from(`${directory}/`), Buffer.from([0x66, 0xff, 0xfe, 0x80])]);
    try {
      fs.writeFileSync(path, "x");
    } catch (error) {
      context.skip(`this file system accepts only UTF-8 names (${systemErrorCode(error)})`);
    }
    posix.setTimes(path, 1n, 123_456_789n);
    expect(fs.lstatSync(path, { bigint: true }).mtimeNs).toBe(123_456_789n);
    posix.makeFifo(Buffer.concat([path, Buffer.from(".pipe")]), 0o600);
    const names = fs.readdirSync(directory, { encoding: "buffer" }).map((name) => name.toString("hex"));
    expect(names.sort()).toEqual(["66fffe80", "66fffe802e70697065"]);
  });

  it.skipIf(process.platform !== "linux")("becomeSubreaper adopts orphaned descendants", () => {
    const source = `
      import { spawnSync } from "node:child_process";
      import { readFileSync } from "node:fs";
      import { posixSupport } from ${JSON.stringify(new URL("posix.ts", import.meta.url).href)};
      posixSupport().posix.becomeSubreaper();
      const orphan = Number(spawnSync("sh", ["-c", "sleep 30 >/dev/null 2>&1 & echo $!"], { encoding: "utf8" }).stdout);
      const parent = Number(readFileSync("/proc/" + orphan + "/stat", "latin1").split(") ")[1].split(" ")[1]);
      process.kill(orphan, "SIGKILL");
      console.log(parent === process.pid);`;
    expect(execFileSync(process.execPath, ["--input-type=module", "-e", source], { encoding: "utf8" })).toBe(
      "true\n",
    );
  });
});

function codeOf(action: () => unknown): string | undefined {
  try {
    action();
  } catch (error) {
    return systemErrorCode(error) ?? String(error);
  }
  return undefined;
}
