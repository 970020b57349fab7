// Files that a process writes through a mapping: the kernel does not change their stat with every write.
import { spawn } from "node:child_process";
import { once } from "node:events";
import fs from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { describe, expect, it, vi } from "vitest";
import { findMappedFiles } from "../../src/snapshot/scan/mapped-files.ts";
import { createLab } from "./lab.ts";
import { isInstalled, reportSkipped } from "./tools.ts";

const SIZE = 8192;
const WRITER = `
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    pages = mmap.mmap(file.fileno(), 0)
for line in sys.stdin:
    pages[:] = line[:1].encode() * len(pages)
    print("written", flush=True)
`;

/** A process that has the file mapped, and fills it with a letter when asked. */
function startWriter(file: string) {
  const child = spawn("python3", ["-c", WRITER, file], { stdio: ["pipe", "pipe", "inherit"] });
  const answers = createInterface(child.stdout)[Symbol.asyncIterator]();
  const ended = once(child, "close");
  return {
    async fill(letter: string) {
      child.stdin.write(`${letter}\n`);
      expect((await answers.next()).value).toBe("written");
    },
    async [Symbol.asyncDispose]() {
      child.stdin.end();
      await ended;
    },
  };
}

const canRun =
  process.platform === "linux" && isInstalled("python3", "files that a process has mapped into memory");
const places = ["", "/dev/shm"].filter((place) => place === "" || isWritable(place));

function isWritable(directory: string): boolean {
  try {
    fs.accessSync(directory, fs.constants.W_OK);
    return true;
  } catch {
    reportSkipped("cells in memory", `${directory} is not writable`);
    return false;
  }
}

const NOTHING_SEEN = { dirty: { paths: new Set<string>(), trees: new Set<string>() } };

describe.skipIf(!canRun).each(places)("a file that a process has mapped for writing %s", (place) => {
  it.each([
    ["", {}],
    [" and no watcher reports it", NOTHING_SEEN],
  ])("is saved correctly, although its stat stays the same%s", async (_, options) => {
    if (place !== "") vi.stubEnv("TMPDIR", place);
    using lab = createLab();
    vi.unstubAllEnvs();
    const file = join(lab.worktree, "mapped");
    fs.writeFileSync(file, "-".repeat(SIZE));
    fs.writeFileSync(join(lab.worktree, "other"), "other");
    const { ino } = fs.statSync(file);
    const expectSaved = async (letter: string) => {
      const { flaws } = await lab.checkpoint(options);
      expect(flaws).toEqual([]);
      expect(lab.text("worktree/mapped")).toBe(letter.repeat(SIZE));
    };
    {
      await using writer = startWriter(file);
      await writer.fill("a");
      expect(findMappedFiles([lab.cell]).inodes).toContain(ino);
      for (const letter of ["b", "c", "d"]) {
        await expectSaved(String.fromCharCode(letter.charCodeAt(0) - 1));
        await writer.fill(letter);
      }
      await expectSaved("d");
      // After the capture, and the process is gone at the next one.
      await writer.fill("e");
    }
    expect(findMappedFiles([lab.cell]).inodes).not.toContain(ino);
    await expectSaved("e");
    expect((await lab.checkpoint(options)).outcome).toBe("unchanged");
    await lab.verify();
  });

  it("is saved correctly, although it was mapped after the last scan of the processes", async () => {
    if (place !== "") vi.stubEnv("TMPDIR", place);
    using lab = createLab();
    vi.unstubAllEnvs();
    const file = join(lab.worktree, "mapped");
    fs.writeFileSync(file, "-".repeat(SIZE));
    await lab.checkpoint();
    {
      await using writer = startWriter(file);
      await writer.fill("a");
      // From a dirty set, with the mappings that the first checkpoint found. Its wall clock is ahead, so the file looks old.
      await lab.checkpoint({ dirty: { paths: new Set(["worktree/mapped"]), trees: new Set() } });
      expect(lab.text("worktree/mapped")).toBe("a".repeat(SIZE));
      await writer.fill("b");
    }
    await lab.checkpoint(NOTHING_SEEN);
    expect(lab.text("worktree/mapped")).toBe("b".repeat(SIZE));
  });
});
