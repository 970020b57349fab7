// Disks that are full, broken or read-only, and a process out of descriptors: a clear error that names the object and the
// next command, earlier checkpoints intact, and the next one works.
import { execFileSync, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { systemDisk } from "../../src/platform/disk.ts";
import { LazarusError } from "../../src/platform/errors.ts";
import { prune } from "../../src/snapshot/operations/prune.ts";
import { rebuildRegistry } from "../../src/snapshot/operations/rebuild-registry.ts";
import { restoreCell } from "../../src/snapshot/operations/restore.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import type { Retention } from "../../src/snapshot/settings.ts";
import { createFaultyDisk, type FaultCode } from "../../src/testing/index.ts";
import { COMPILE_CACHE } from "../cli/hermetic.ts";
import { isRoot } from "../plain-user.ts";
import { createLab, type Lab, vaultFiles } from "./lab.ts";

const noPruning = { document: { retention: { auto: false } } };
const CODES: Readonly<Record<string, string>> = {
  ENOSPC: "DISK_FULL",
  EIO: "DISK_IO",
  EROFS: "DISK_READ_ONLY",
  EMFILE: "TOO_MANY_FILES",
};

function prepare(lab: Lab): void {
  fs.writeFileSync(join(lab.worktree, "f"), "first");
  fs.writeFileSync(join(lab.worktree, ".env"), "first");
}

function change(lab: Lab, round: number): void {
  fs.writeFileSync(join(lab.worktree, "f"), `round ${round} ${"x".repeat(round)}`);
  fs.writeFileSync(join(lab.worktree, ".env"), `round ${round}`);
  fs.writeFileSync(join(lab.worktree, `new${round % 3}`), `round ${round}`);
}

describe("a disk that fails at any one call", () => {
  for (const [code, every] of [
    ["ENOSPC", 1],
    ["EIO", 2],
    ["EROFS", 5],
    ["EMFILE", 5],
  ] as const satisfies [FaultCode, number][]) {
    it(`with ${code} is reported, and nothing saved is lost`, async () => {
      using lab = createLab(noPruning);
      prepare(lab);
      await lab.checkpoint();
      change(lab, 0);
      const counting = createFaultyDisk(systemDisk);
      await lab.with({ machine: { disk: counting } }).checkpoint();
      const total = counting.calls.length;
      expect(total).toBeGreaterThan(20);
      let failures = 0;
      for (let at = 1; at <= total; at += every) {
        change(lab, at);
        const before = lab.context.vault.list().map(({ id }) => id);
        const disk = createFaultyDisk(systemDisk, { code, at });
        const ended = await lab
          .with({ machine: { disk } })
          .checkpoint()
          .then(
            (result) => result,
            (error: unknown) => error,
          );
        const where = `call ${at}: ${disk.calls[at - 1]?.method} ${disk.calls[at - 1]?.path}`;
        const after = lab.context.vault.list().map(({ id }) => id);
        expect(after.slice(0, before.length), where).toEqual(before);
        if (ended instanceof Error) {
          failures += 1;
          expect(ended, where).toBeInstanceOf(LazarusError);
          const { code: named, message, hint } = ended as LazarusError;
          expect(named, where).toBe(CODES[code]);
          expect(message, where).toContain(lab.context.vault.root);
          expect(hint, where).toBeTruthy();
        }
        expect(listScratch(lab), `${where} leaves nothing that fills the disk`).toEqual([]);
      }
      expect(failures).toBeGreaterThan(total / every / 2);
      await lab.verify();
      change(lab, total + 1);
      await lab.checkpoint();
      expect(lab.text("worktree/f")).toContain(`round ${total + 1}`);
      await lab.verify();
    });
  }
});

function listScratch(lab: Lab): string[] {
  return fs.existsSync(lab.context.vault.scratch) ? fs.readdirSync(lab.context.vault.scratch) : [];
}

interface Mount extends Disposable {
  readonly path: string;
  remount(options: string): void;
}

function mountSmall(path: string, megabytes: number): Mount | undefined {
  fs.mkdirSync(path, { recursive: true });
  const { status } = spawnSync("mount", ["-t", "tmpfs", "-o", `size=${megabytes}m`, "lazarus-test", path]);
  if (status !== 0) return undefined;
  return {
    path,
    remount: (options) => execFileSync("mount", ["-o", `remount,${options}`, path]),
    [Symbol.dispose]: () => execFileSync("umount", ["-l", path]),
  };
}

const KEEP_ONE: Retention = {
  keep_last: 1,
  keep_hourly: 0,
  keep_daily: 0,
  keep_weekly: 0,
  keep_within_seconds: 0,
  max_bytes: 0,
};

describe("a full disk", () => {
  it("can be freed by a prune, which uses the vault's reserve and makes it again", async () => {
    using lab = createLab(noPruning);
    for (let i = 0; i < 4; i += 1) {
      fs.writeFileSync(join(lab.worktree, "f"), randomBytes(20_000));
      await lab.checkpoint();
    }
    const { root } = lab.context.vault;
    const reserve = join(root, "lazarus", "reserve");
    const filled = [...vaultFiles(root).values()].reduce((sum, size) => sum + size, 0);
    const disk = createFaultyDisk(systemDisk, {
      code: "ENOSPC",
      at: ({ method }) =>
        (method === "write" || method === "create") &&
        [...vaultFiles(root).values()].reduce((sum, size) => sum + size, 0) >= filled,
    });
    const full = lab.with({ machine: { disk } });
    await expect(full.checkpoint()).rejects.toMatchObject({ code: "DISK_FULL" });
    const { removed } = await prune(full.context, { policy: KEEP_ONE });
    expect(removed.length).toBeGreaterThan(1);
    expect(fs.existsSync(reserve)).toBe(true);
    await lab.verify();
  });
});

describe("a small real file system", () => {
  it("that is full or read-only is reported, and the vault stays valid", async ({ skip }) => {
    using lab = createLab(noPruning);
    using mount = isRoot ? mountSmall(lab.context.config.vault_root, 4) : undefined;
    if (mount === undefined) skip("mounting a tmpfs needs root and the right to mount");
    prepare(lab);
    const first = await lab.checkpoint();
    fs.writeFileSync(join(lab.worktree, "big"), randomBytes(6 << 20));
    for (let i = 0; i < 40; i += 1) fs.writeFileSync(join(lab.worktree, `part${i}`), randomBytes(200_000));
    for (let attempt = 0; attempt < 2; attempt += 1) {
      await expect(lab.checkpoint()).rejects.toMatchObject({
        code: "DISK_FULL",
        message: expect.stringContaining(lab.context.vault.root),
        hint: expect.stringContaining("df -h"),
      });
      expect(lab.context.vault.list().map(({ id }) => id)).toEqual([first.ref.id]);
      expect(
        [...vaultFiles(lab.context.vault.root).values()].reduce((sum, size) => sum + size, 0),
      ).toBeLessThan(60_000);
    }
    await lab.verify();
    mount!.remount("ro");
    await expect(lab.checkpoint()).rejects.toMatchObject({
      code: "DISK_READ_ONLY",
      hint: expect.any(String),
    });
    expect(lab.text("worktree/f")).toBe("first");
    mount!.remount("rw,size=100m");
    await lab.checkpoint();
    await lab.verify();
  });

  it("that is full can be freed by a prune", async ({ skip }) => {
    using lab = createLab(noPruning);
    using mount = isRoot ? mountSmall(lab.context.config.vault_root, 4) : undefined;
    if (mount === undefined) skip("mounting a tmpfs needs root and the right to mount");
    // Enough checkpoints for a merge of layers: before it, the newest checkpoint needs all of them.
    for (let i = 0; i < 10; i += 1) {
      fs.writeFileSync(join(lab.worktree, "f"), randomBytes(100_000));
      await lab.checkpoint();
    }
    const free = () => {
      const { bavail, bsize } = fs.statfsSync(mount!.path);
      return bavail * bsize;
    };
    const filler = fs.openSync(join(mount!.path, "filler"), "w");
    try {
      for (;;) fs.writeSync(filler, Buffer.alloc(4096, 1));
    } catch {}
    fs.closeSync(filler);
    expect(free()).toBe(0);
    const { removed } = await prune(lab.context, { policy: KEEP_ONE });
    expect(removed.length).toBeGreaterThan(2);
    expect(free()).toBeGreaterThan(400_000);
    await lab.verify();
  });

  it("that is full in the cache directory only costs time", async ({ skip }) => {
    using lab = createLab(noPruning);
    using mount = isRoot ? mountSmall(lab.context.config.run_dir, 1) : undefined;
    if (mount === undefined) skip("mounting a tmpfs needs root and the right to mount");
    prepare(lab);
    await lab.checkpoint();
    try {
      fs.writeFileSync(join(mount!.path, "filler"), Buffer.alloc(2 << 20));
    } catch {}
    for (let i = 0; i < 3; i += 1) {
      change(lab, i);
      expect((await lab.checkpoint()).flaws).toEqual([]);
      expect(lab.text("worktree/f")).toContain(`round ${i}`);
    }
    await lab.verify();
  });
});

describe("a process that runs out of descriptors", () => {
  it("reports it instead of taking a partial checkpoint", async () => {
    using lab = createLab(noPruning);
    prepare(lab);
    fs.mkdirSync(join(lab.worktree, "a/b/c"), { recursive: true });
    const endings = new Set<string>();
    for (const left of [0, 1, 2, 3, 4, 6, 10, 20]) {
      const { stdout, stderr } = spawnSync(
        "sh",
        [
          "-c",
          `ulimit -n 200; exec "$0" "$@"`,
          process.execPath,
          join(import.meta.dirname, "out-of-descriptors.ts"),
          lab.home,
          String(left),
        ],
        { encoding: "utf8" },
      );
      expect(stdout, `${left} left: ${stderr}`).toMatch(/^(saved|TOO_MANY_FILES .+)$/);
      endings.add(stdout.split(" ")[0]!);
    }
    expect([...endings].sort()).toEqual(["TOO_MANY_FILES", "saved"]);
    await lab.verify();
    expect((await lab.checkpoint()).flaws).toEqual([]);
    expect(lab.listing().has("worktree/a/b/c")).toBe(true);
  });
});

describe("a damaged vault", () => {
  it("does not prevent the next checkpoint, which stores everything again and reports the damage", async () => {
    using lab = createLab(noPruning);
    prepare(lab);
    const first = await lab.checkpoint();
    const [layer] = first.checkpoint.layers;
    const damages = [
      () => fs.rmSync(lab.context.vault.blobPath(layer!.digest)),
      () => fs.truncateSync(lab.context.vault.blobPath(lab.context.vault.list().at(-1)!.manifest), 10),
    ];
    for (const [i, damage] of damages.entries()) {
      damage();
      change(lab, i);
      const next = await lab.checkpoint();
      expect(next.flaws).toEqual([
        {
          path: ".",
          kind: "degraded",
          reason: expect.stringMatching(/is damaged .*everything was stored again/),
        },
      ]);
      const restored = await lab.restored(next.ref.id);
      expect(fs.readFileSync(join(restored, "worktree/f"), "utf8")).toContain(`round ${i}`);
      expect((await lab.checkpoint()).flaws).toEqual([]);
    }
  });

  it("without an index accepts no checkpoint or prune until it is repaired; nothing else is lost", async () => {
    using lab = createLab(noPruning);
    prepare(lab);
    const { vault, machine, config } = lab.context;
    await lab.checkpoint();
    change(lab, 1);
    const { ref } = await lab.checkpoint();
    const blobs = vault.blobs().length;
    fs.rmSync(join(vault.root, "index.json"));
    for (const attempt of [
      () => lab.checkpoint(),
      () => prune(lab.context),
      () => restoreCell(lab.context, {}),
    ])
      await expect(attempt()).rejects.toMatchObject({
        code: "VAULT_DAMAGED",
        message: expect.stringContaining("index.json is damaged: it is missing"),
        hint: expect.stringContaining("lazarus registry rebuild"),
      });
    expect((await verifyVault(vault)).findings).toMatchObject([{ object: "index.json" }]);
    expect(vault.blobs()).toHaveLength(blobs);
    await rebuildRegistry(machine, config);
    expect(vault.list().map(({ id }) => id)).toContain(ref.id);
    expect(vault.list()).toHaveLength(2);
  });
});

describe("the command line", () => {
  it("exits with 5 and lists skipped paths", () => {
    using lab = createLab();
    fs.mkdirSync(join(lab.cell, "state"), { recursive: true });
    execFileSync("python3", [
      "-c",
      "import socket,sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])",
      join(lab.worktree, "s"),
    ]);
    const launcher = join(import.meta.dirname, "../../bin/lazarus.js");
    const { status, stdout, stderr } = spawnSync(process.execPath, [launcher, "checkpoint", "m"], {
      encoding: "utf8",
      env: {
        PATH: process.env.PATH,
        LAZARUS_HOME: lab.home,
        HOME: lab.directory,
        NO_COLOR: "1",
        ...COMPILE_CACHE,
      },
    });
    expect(stderr).toContain("worktree/s");
    expect(status).toBe(5);
    expect(stdout.trim()).toMatch(/^\d{8}-\d{6}-\w{6}$/);
  });
});
