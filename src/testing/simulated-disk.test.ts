// The simulated disk must be as unreliable as a real one: these tests define what a power loss may lose, and compare its
// errors with those of the real file system.
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { type Disk, systemDisk } from "../platform/disk.ts";
import { createRandom } from "./seeded-ids.ts";
import { createSimulatedDisk, type SimulatedDisk } from "./simulated-disk.ts";

const SEEDS = 300;

/** Everything that power loss can leave of one file, over many seeds. */
function outcomes(disk: SimulatedDisk, path: string): Set<string> {
  const seen = new Set<string>();
  for (let seed = 0; seed < SEEDS; seed++) {
    const left = disk.crash(createRandom(seed));
    seen.add(
      left.kindOf(path) === "file" ? left.readFile(path).toString("latin1") : String(left.kindOf(path)),
    );
  }
  return seen;
}

function put(disk: Disk, path: string, text: string, sync: { content?: boolean; name?: boolean } = {}): void {
  const fd = disk.create(path, 0o600);
  disk.write(fd, Buffer.from(text));
  if (sync.content) disk.fsync(fd);
  disk.close(fd);
  if (sync.name) disk.fsyncDirectory("/");
}

describe("power loss", () => {
  it("can lose the name of a file whose content was synced", () => {
    const disk = createSimulatedDisk();
    put(disk, "/f", "text", { content: true });
    expect(outcomes(disk, "/f")).toEqual(new Set(["text", "undefined"]));
  });

  it("keeps, drops, truncates or garbles unsynced content of a synced name", () => {
    const disk = createSimulatedDisk();
    put(disk, "/f", "text", { name: true });
    const seen = outcomes(disk, "/f");
    for (const expected of ["text", "", "te", "\0\0\0\0"]) expect(seen).toContain(expected);
    expect(seen).not.toContain("undefined");
    expect([...seen].some((text) => text.length === 4 && !/^(text|\0+)$/.test(text))).toBe(true);
  });

  it("keeps synced names and content", () => {
    const disk = createSimulatedDisk();
    put(disk, "/f", "text", { content: true, name: true });
    expect(outcomes(disk, "/f")).toEqual(new Set(["text"]));
    const fd = disk.openAppend("/f", 0o600);
    disk.write(fd, Buffer.from("+more"));
    for (const text of outcomes(disk, "/f")) expect(text.startsWith("text")).toBe(true);
    disk.fsync(fd);
    expect(outcomes(disk, "/f")).toEqual(new Set(["text+more"]));
  });

  it("leaves a rename within one directory done or undone, never half", () => {
    const disk = createSimulatedDisk();
    put(disk, "/old", "text", { content: true, name: true });
    disk.rename("/old", "/new");
    const seen = new Set<string>();
    for (let seed = 0; seed < SEEDS; seed++) seen.add(disk.crash(createRandom(seed)).list("/").join());
    expect(seen).toEqual(new Set(["old", "new"]));
    disk.fsyncDirectory("/");
    expect(outcomes(disk, "/new")).toEqual(new Set(["text"]));
  });

  it("can lose a file moved between directories of which only the first was synced", () => {
    const disk = createSimulatedDisk();
    disk.mkdir("/a", 0o700);
    disk.mkdir("/b", 0o700);
    put(disk, "/a/f", "text", { content: true });
    for (const path of ["/", "/a", "/b"]) disk.fsyncDirectory(path);
    disk.rename("/a/f", "/b/f");
    for (let seed = 0; seed < SEEDS; seed++) {
      const left = disk.crash(createRandom(seed));
      expect([left.kindOf("/a/f"), left.kindOf("/b/f")].filter(Boolean), `seed ${seed}`).toHaveLength(1);
    }
    disk.fsyncDirectory("/a");
    expect(outcomes(disk, "/b/f")).toEqual(new Set(["text", "undefined"]));
    disk.fsyncDirectory("/b");
    expect(outcomes(disk, "/b/f")).toEqual(new Set(["text"]));
  });

  it("can lose a whole tree whose top name was not synced", () => {
    const disk = createSimulatedDisk();
    disk.mkdir("/d", 0o700);
    put(disk, "/d/f", "text", { content: true });
    disk.fsyncDirectory("/d");
    expect(outcomes(disk, "/d/f")).toEqual(new Set(["text", "undefined"]));
    disk.fsyncDirectory("/");
    expect(outcomes(disk, "/d/f")).toEqual(new Set(["text"]));
  });

  it("can bring an unlinked file back unless the directory was synced", () => {
    const disk = createSimulatedDisk();
    put(disk, "/f", "text", { content: true, name: true });
    disk.unlink("/f");
    expect(outcomes(disk, "/f")).toEqual(new Set(["text", "undefined"]));
    disk.fsyncDirectory("/");
    expect(outcomes(disk, "/f")).toEqual(new Set(["undefined"]));
  });

  it("keeps hard links to one file", () => {
    const disk = createSimulatedDisk();
    put(disk, "/f", "text");
    disk.link("/f", "/g");
    disk.fsyncDirectory("/");
    for (let seed = 0; seed < SEEDS; seed++) {
      const left = disk.crash(createRandom(seed));
      expect(left.readFile("/f")).toEqual(left.readFile("/g"));
    }
  });

  it("is reproducible for a seed, and does not change the original disk", () => {
    const disk = createSimulatedDisk();
    put(disk, "/f", "some longer text");
    const left = (seed: number) => {
      const after = disk.crash(createRandom(seed));
      return after.list("/").map((name) => [name, after.readFile(`/${name}`).toString("hex")]);
    };
    for (let seed = 0; seed < 50; seed++) expect(left(seed)).toEqual(left(seed));
    expect(disk.readFile("/f").toString()).toBe("some longer text");
  });

  it("fails every later call", () => {
    const disk = createSimulatedDisk();
    disk.cutPowerAfter(2);
    const fd = disk.create("/f", 0o600);
    disk.write(fd, Buffer.from("x"));
    expect(() => disk.fsync(fd)).toThrow("EIO");
    expect(() => disk.unlink("/f")).toThrow("EIO");
    expect(disk.list("/")).toEqual(["f"]);
  });
});

describe("errors", () => {
  const failures: Record<string, (disk: Disk, root: string) => unknown> = {
    "create over a file": (disk, root) => disk.create(`${root}/file`, 0o600),
    "create in a missing directory": (disk, root) => disk.create(`${root}/no/file`, 0o600),
    "create below a file": (disk, root) => disk.create(`${root}/file/x`, 0o600),
    "append to a directory": (disk, root) => disk.openAppend(`${root}/full`, 0o600),
    "unlink a missing file": (disk, root) => disk.unlink(`${root}/no`),
    "rename a missing file": (disk, root) => disk.rename(`${root}/no`, `${root}/new`),
    "rename a file over a directory": (disk, root) => disk.rename(`${root}/file`, `${root}/full`),
    "rename a directory over a file": (disk, root) => disk.rename(`${root}/full`, `${root}/file`),
    "rename a directory over one that is not empty": (disk, root) =>
      disk.rename(`${root}/empty`, `${root}/full`),
    "rename a directory into itself": (disk, root) => disk.rename(`${root}/full`, `${root}/full/x`),
    "link over a file": (disk, root) => disk.link(`${root}/full/x`, `${root}/file`),
    "link a missing file": (disk, root) => disk.link(`${root}/no`, `${root}/new`),
    "link a directory": (disk, root) => disk.link(`${root}/full`, `${root}/new`),
    "mkdir over a file": (disk, root) => disk.mkdir(`${root}/file`, 0o700),
    "mkdir in a missing directory": (disk, root) => disk.mkdir(`${root}/no/x`, 0o700),
    "fsync of a missing directory": (disk, root) => disk.fsyncDirectory(`${root}/no`),
    "fsync of a file as directory": (disk, root) => disk.fsyncDirectory(`${root}/file`),
    "write to a closed file": (disk, root) => {
      const fd = disk.openAppend(`${root}/file`, 0o600);
      disk.close(fd);
      disk.write(fd, Buffer.from("x"));
    },
  };
  const prepare = (disk: Disk, root: string) => {
    for (const name of ["full", "empty"]) disk.mkdir(`${root}/${name}`, 0o700);
    for (const name of ["file", "full/x"]) disk.close(disk.create(`${root}/${name}`, 0o600));
  };
  const errorOf = (action: () => unknown): unknown => {
    try {
      action();
      return undefined;
    } catch (error) {
      const { code, errno, syscall, path, dest, message } = error as Record<string, unknown>;
      return { code, errno, syscall, path, dest, message };
    }
  };

  for (const [what, call] of Object.entries(failures)) {
    it(`${what}: the same as the real file system's`, () => {
      const root = mkdtempSync(join(tmpdir(), "lazarus-disk-"));
      try {
        const simulated = createSimulatedDisk();
        let parent = "";
        for (const name of root.split("/").filter(Boolean)) {
          parent += `/${name}`;
          simulated.mkdir(parent, 0o700);
        }
        prepare(systemDisk, root);
        prepare(simulated, root);
        const real = errorOf(() => call(systemDisk, root));
        expect(real).toBeDefined();
        expect(errorOf(() => call(simulated, root))).toEqual(real);
      } finally {
        rmSync(root, { recursive: true, force: true });
      }
    });
  }

  it("renaming one of a file's two names over the other does nothing, as POSIX requires", () => {
    const root = mkdtempSync(join(tmpdir(), "lazarus-disk-"));
    const simulated = createSimulatedDisk();
    try {
      mkdirSync(join(root, "d"));
      simulated.mkdir("/d", 0o700);
      for (const [disk, base] of [
        [systemDisk, join(root, "d")],
        [simulated, "/d"],
      ] as const) {
        disk.close(disk.create(`${base}/a`, 0o600));
        disk.link(`${base}/a`, `${base}/b`);
        disk.rename(`${base}/a`, `${base}/b`);
        // Both names are still there to be removed.
        disk.unlink(`${base}/a`);
        disk.unlink(`${base}/b`);
      }
    } finally {
      rmSync(root, { recursive: true, force: true });
    }
  });

  it("distinguishes names that are not UTF-8", () => {
    const disk = createSimulatedDisk();
    disk.close(disk.create(Buffer.from([0x2f, 0xff]), 0o600));
    disk.close(disk.create(Buffer.from([0x2f, 0xfe]), 0o600));
    expect(disk.kindOf(Buffer.from([0x2f, 0xff]))).toBe("file");
    expect(disk.kindOf(Buffer.from([0x2f, 0xfd]))).toBeUndefined();
  });
});
