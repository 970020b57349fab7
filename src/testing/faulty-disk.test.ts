// The faulty disk: which calls fail, with what, and what a failed call leaves.
import { describe, expect, it } from "vitest";
import { createFaultyDisk } from "./faulty-disk.ts";
import { createSimulatedDisk } from "./simulated-disk.ts";

describe("faulty disk", () => {
  it("passes all calls through and records them", () => {
    const disk = createFaultyDisk(createSimulatedDisk());
    const fd = disk.create("/f", 0o600);
    disk.write(fd, Buffer.from("x"));
    disk.close(fd);
    disk.rename("/f", "/g");
    expect(disk.calls).toEqual([
      { number: 1, method: "create", path: "/f" },
      { number: 2, method: "write", path: "/f" },
      { number: 3, method: "close", path: "/f" },
      { number: 4, method: "rename", path: "/f", dest: "/g" },
    ]);
  });

  it("fails the nth call, once, with an error shaped like Node's", () => {
    const disk = createFaultyDisk(createSimulatedDisk(), { code: "EROFS", at: 1 });
    expect(() => disk.mkdir("/d", 0o700)).toThrow(
      expect.objectContaining({
        code: "EROFS",
        errno: -30,
        syscall: "mkdir",
        path: "/d",
        message: "EROFS: read-only file system, mkdir '/d'",
      }),
    );
    disk.mkdir("/d", 0o700);
  });

  it("fails every call that a predicate selects", () => {
    const disk = createFaultyDisk(
      createSimulatedDisk(),
      { code: "ENOSPC", at: ({ method, path }) => method === "write" && path === "/full" },
      { code: "EMFILE", at: ({ method, number }) => method === "create" && number > 5 },
    );
    const full = disk.create("/full", 0o600);
    const other = disk.create("/other", 0o600);
    disk.write(other, Buffer.from("fits"));
    for (let n = 0; n < 2; n++) expect(() => disk.write(full, Buffer.from("x"))).toThrow("ENOSPC");
    expect(() => disk.create("/one-more", 0o600)).toThrow("EMFILE");
  });

  it("writes half of a failed write, and closes on a failed close", () => {
    const inner = createSimulatedDisk();
    const disk = createFaultyDisk(
      inner,
      { code: "ENOSPC", at: ({ method }) => method === "write" },
      { code: "EIO", at: ({ method }) => method === "close" },
    );
    const fd = disk.create("/f", 0o600);
    expect(() => disk.write(fd, Buffer.from("12345678"))).toThrow("ENOSPC");
    expect(() => disk.close(fd)).toThrow("EIO");
    expect(inner.readFile("/f").toString()).toBe("1234");
    expect(() => inner.close(fd)).toThrow("EBADF");
  });
});
