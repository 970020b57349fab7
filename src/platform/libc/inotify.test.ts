// Decoding of event buffers: made up here, and as the kernel writes them.
import fs from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { posixSupport } from "../posix.ts";
import { decodeEvents, IN_CREATE, IN_DELETE, IN_ISDIR, IN_MOVED_FROM, IN_MOVED_TO } from "./inotify.ts";

function encodeEvent(wd: number, mask: number, cookie: number, name: Buffer): Buffer {
  const padded = Buffer.alloc(name.length === 0 ? 0 : Math.ceil((name.length + 1) / 16) * 16);
  name.copy(padded);
  const header = Buffer.alloc(16);
  header.writeInt32LE(wd, 0);
  header.writeUInt32LE(mask, 4);
  header.writeUInt32LE(cookie, 8);
  header.writeUInt32LE(padded.length, 12);
  return Buffer.concat([header, padded]);
}

describe("decodeEvents", () => {
  it("returns every event with its name as bytes", () => {
    const events = [
      { wd: 1, mask: IN_CREATE + IN_ISDIR, cookie: 0, name: Buffer.from("directory") },
      { wd: -1, mask: 0x4000, cookie: 0, name: Buffer.alloc(0) },
      { wd: 2, mask: 0xc0000002, cookie: 0xffffffff, name: Buffer.of(0xff, 0xfe) },
      { wd: 3, mask: IN_DELETE, cookie: 7, name: Buffer.from("fifteen letters") },
      { wd: 4, mask: IN_DELETE, cookie: 7, name: Buffer.from("sixteen letters!") },
    ];
    const bytes = Buffer.concat(
      events.map(({ wd, mask, cookie, name }) => encodeEvent(wd, mask, cookie, name)),
    );
    const buffer = Buffer.concat([bytes, Buffer.alloc(100, 1)]);
    expect([...decodeEvents(buffer, bytes.length)]).toEqual(events);
  });

  it("returns nothing for an empty read", () => {
    expect([...decodeEvents(Buffer.alloc(64), 0)]).toEqual([]);
  });
});

const support = posixSupport();
const reason = process.platform !== "linux" ? "not Linux" : support.ok ? undefined : support.reason;

describe.skipIf(reason !== undefined)(`inotify calls${reason === undefined ? "" : ` (${reason})`}`, () => {
  const posix = support.ok ? support.posix : expect.unreachable("skipped");

  it("report what happened in a watched directory, and nothing after the watch has ended", () => {
    const directory = fs.mkdtempSync(join(tmpdir(), "lazarus-inotify-"));
    const fd = posix.openInotify();
    const buffer = Buffer.alloc(4096);
    const read = () => [...decodeEvents(buffer, fs.readSync(fd, buffer, 0, buffer.length, null))];
    try {
      const wd = posix.addWatch(fd, directory, IN_CREATE | IN_MOVED_FROM | IN_MOVED_TO);
      fs.mkdirSync(join(directory, "a"));
      fs.renameSync(join(directory, "a"), join(directory, "b"));
      const [created, from, to, ...rest] = read();
      expect(rest).toEqual([]);
      expect(created).toEqual({ wd, mask: IN_CREATE + IN_ISDIR, cookie: 0, name: Buffer.from("a") });
      expect(from).toMatchObject({ mask: IN_MOVED_FROM + IN_ISDIR, name: Buffer.from("a") });
      expect(to).toMatchObject({ mask: IN_MOVED_TO + IN_ISDIR, name: Buffer.from("b") });
      expect(from!.cookie).toBe(to!.cookie);

      posix.removeWatch(fd, wd);
      posix.removeWatch(fd, wd);
      read();
      fs.mkdirSync(join(directory, "c"));
      expect(read).toThrow(/EAGAIN/);
    } finally {
      fs.closeSync(fd);
      fs.rmSync(directory, { recursive: true });
    }
  });

  it("name the error", () => {
    const fd = posix.openInotify();
    try {
      expect(() => posix.addWatch(fd, "/no/such/directory", IN_CREATE)).toThrow(
        /^ENOENT: inotify_add_watch '\/no/,
      );
    } finally {
      fs.closeSync(fd);
    }
  });
});
