// Secrets stay local (INV-7): secret files go to local-only layers, and neither their content nor their names reach a
// layer that could be pushed, after any edits and merges of layers.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { isLocalOnly } from "../../src/snapshot/vault/codec.ts";
import { openLayerOf, readCheckpoint } from "../../src/snapshot/vault/manifest.ts";
import { createLab, type Lab, type LabOptions } from "./lab.ts";

const MARK = "VERY-SECRET-MARK";
/** One path for every default pattern. */
const SECRETS = [
  ".env",
  "deep/.env.production",
  "server.pem",
  "tls/site.key",
  "a.p12",
  "a.pfx",
  "a.keystore",
  "a.jks",
  "id_rsa",
  "id_dsa",
  "id_ecdsa",
  "id_ed25519",
  ".netrc",
  ".npmrc",
  ".pypirc",
  ".pgpass",
  ".git-credentials",
  "credentials.json",
  "service-account-prod.json",
  "home/.aws/credentials",
  "home/.ssh/config",
  "home/.ssh/keys/deep",
  "home/.gnupg/ring",
  "home/.docker/config.json",
  "home/.kube/config",
];

function write(lab: Lab, path: string, content: string): void {
  fs.mkdirSync(dirname(join(lab.worktree, path)), { recursive: true });
  fs.writeFileSync(join(lab.worktree, path), content);
}

interface LayerContents {
  /** Raw tar bytes of all layers of one kind, of all checkpoints. */
  readonly raw: string;
  readonly names: Set<string>;
  readonly removed: Set<string>;
}

function readLayers(lab: Lab, local: boolean): LayerContents {
  const contents = { raw: "", names: new Set<string>(), removed: new Set<string>() };
  const seen = new Set<string>();
  for (const ref of lab.context.vault.list()) {
    for (const layer of readCheckpoint(lab.context.vault, ref).layers) {
      if (isLocalOnly(layer.mediaType) !== local || seen.has(layer.digest)) continue;
      seen.add(layer.digest);
      using open = openLayerOf(lab.context.vault, layer);
      const length = open.toc.members.reduce((sum, member) => sum + member.raw, 0);
      open.read(0, length, (chunk) => {
        contents.raw += chunk.toString("latin1");
      });
      for (const { path } of open.toc.entries) contents.names.add(path);
      for (const path of open.toc.removed) contents.removed.add(path);
    }
  }
  return contents;
}

/** All objects of the repository, inflated. */
function objects(lab: Lab): string {
  return execFileSync("git", ["-C", lab.worktree, "cat-file", "--batch-all-objects", "--batch"], {
    encoding: "latin1",
    maxBuffer: 2 ** 28,
  });
}

const noPruning: LabOptions = { document: { retention: { auto: false } } };

describe("secret files", () => {
  it("are stored only in local-only layers", async () => {
    using lab = createLab(noPruning);
    execFileSync("git", ["init", "-q", lab.worktree]);
    for (const path of SECRETS) write(lab, path, `${MARK} ${path}`);
    write(lab, "ordinary.txt", "ordinary");
    const { checkpoint, flaws, ref } = await lab.checkpoint();
    expect(flaws).toEqual([]);
    for (const path of SECRETS) expect(lab.text(`worktree/${path}`, ref.id)).toBe(`${MARK} ${path}`);
    const open = readLayers(lab, false);
    expect(open.raw).not.toContain(MARK);
    expect([...readLayers(lab, true).names].sort()).toEqual(SECRETS.map((path) => `worktree/${path}`).sort());
    const manifest = JSON.parse(lab.context.vault.read(ref.manifest).toString());
    expect(
      manifest.layers.map((layer: { mediaType: string; annotations: object }) => [
        layer.mediaType,
        "vnd.lazarus.local-only" in layer.annotations,
      ]),
    ).toEqual([
      ["application/vnd.oci.image.layer.v1.tar+gzip", false],
      ["application/vnd.oci.image.layer.nondistributable.v1.tar+gzip", true],
    ]);
    expect(checkpoint.metadata.git).toMatchObject({
      status: "committed",
      note: `not in the git commit, because git does not track them: ${SECRETS.length} secret files`,
    });
    expect(objects(lab)).not.toContain(MARK);
    expect(objects(lab)).toContain("ordinary");
  });

  it("stay out of git when an ordinary file had their name before", async () => {
    using lab = createLab(noPruning);
    execFileSync("git", ["init", "-q", lab.worktree]);
    fs.symlinkSync("nowhere", join(lab.worktree, ".env"));
    fs.mkdirSync(join(lab.worktree, "server.pem"));
    write(lab, "server.pem/inner", "not a secret");
    await lab.checkpoint();
    for (const path of [".env", "server.pem"]) {
      fs.rmSync(join(lab.worktree, path), { recursive: true });
      write(lab, path, `${MARK} ${path}`);
    }
    await lab.checkpoint();
    expect(objects(lab)).not.toContain(MARK);
    expect(readLayers(lab, false).raw).not.toContain(MARK);
  });

  it("stay in local-only layers after edits, removals, renames and compaction", async () => {
    using lab = createLab(noPruning);
    execFileSync("git", ["init", "-q", lab.worktree]);
    for (let i = 0; i < 14; i += 1) {
      write(lab, ".env", `${MARK} ${i}`);
      write(lab, `dir${i % 4}/server.pem`, `${MARK} ${i}`);
      write(lab, `dir${i % 4}/open`, `open ${i}`);
      if (i % 4 === 3) fs.rmSync(join(lab.worktree, "dir1"), { recursive: true, force: true });
      if (i % 5 === 4) fs.rmSync(join(lab.worktree, "dir2/server.pem"), { force: true });
      await lab.checkpoint();
    }
    const open = readLayers(lab, false);
    expect(open.raw).not.toContain(MARK);
    expect([...open.names, ...open.removed].filter((path) => /\.env$|\.pem$/.test(path))).toEqual([]);
    expect(open.raw).not.toContain(".wh.server.pem");
    expect(readLayers(lab, true).removed).toContain("worktree/dir2/server.pem");
    expect(objects(lab)).not.toContain(MARK);
    await lab.verify();
  });

  it("stay in local-only layers under every name of the same file", async () => {
    using lab = createLab(noPruning);
    execFileSync("git", ["init", "-q", lab.worktree]);
    write(lab, ".env", MARK);
    fs.linkSync(join(lab.worktree, ".env"), join(lab.worktree, "harmless"));
    await lab.checkpoint();
    expect(readLayers(lab, false).raw).not.toContain(MARK);
    expect(lab.text("worktree/harmless")).toBe(MARK);
    expect(objects(lab)).not.toContain(MARK);
  });

  it("may become directories and back", async () => {
    using lab = createLab(noPruning);
    write(lab, ".env", MARK);
    await lab.checkpoint();
    fs.rmSync(join(lab.worktree, ".env"));
    write(lab, ".env/lib/module", `${MARK} below`);
    const second = await lab.checkpoint();
    expect([...lab.listing().keys()].filter((path) => path.includes(".env"))).toEqual([
      "worktree/.env",
      "worktree/.env/lib",
      "worktree/.env/lib/module",
    ]);
    fs.rmSync(join(lab.worktree, ".env"), { recursive: true });
    write(lab, ".env", `${MARK} again`);
    const third = await lab.checkpoint();
    expect(lab.text("worktree/.env/lib/module", second.ref.id)).toBe(`${MARK} below`);
    expect(lab.text("worktree/.env", third.ref.id)).toBe(`${MARK} again`);
    expect([...lab.listing().keys()]).not.toContain("worktree/.env/lib");
    expect(readLayers(lab, false).raw).not.toContain(MARK);
  });

  it("can be configured, including whole directories by name", async () => {
    using lab = createLab({
      document: { secrets: { patterns: ["private/", "worktree/top.txt"] }, retention: { auto: false } },
    });
    write(lab, "private/deep/er/x", MARK);
    write(lab, "top.txt", MARK);
    write(lab, "sub/top.txt", "ordinary");
    write(lab, ".env", "not a secret any more");
    await lab.checkpoint();
    expect(readLayers(lab, false).raw).not.toContain(MARK);
    expect(readLayers(lab, false).names).toContain("worktree/sub/top.txt");
    expect(readLayers(lab, false).names).toContain("worktree/.env");
  });

  it("leave the ordinary layers once a pattern matches them, and stay in git if it tracks them", async () => {
    using lab = createLab({ document: { secrets: { patterns: [] }, retention: { auto: false } } });
    const git = (...args: string[]) =>
      execFileSync("git", ["-C", lab.worktree, "-c", "user.name=u", "-c", "user.email=u", ...args], {
        encoding: "utf8",
        stdio: ["ignore", "pipe", "ignore"],
      });
    git("init", "-q");
    write(lab, ".env", "tracked by choice");
    git("add", "-A");
    git("commit", "-qm", "x");
    await lab.checkpoint();
    const strict = lab.with({ document: { retention: { auto: false } } });
    write(lab, ".env", "changed, and still tracked");
    const { checkpoint } = await strict.checkpoint();
    expect(git("show", `${checkpoint.metadata.git.commit}:.env`)).toBe("changed, and still tracked");
    expect(readLayers(lab, true).names).toContain("worktree/.env");
    git("rm", "-q", "--cached", ".env");
    write(lab, ".env", MARK);
    const untracked = await strict.checkpoint();
    expect(() => git("show", `${untracked.checkpoint.metadata.git.commit}:.env`)).toThrow();
    expect(objects(lab)).not.toContain(MARK);
  });
});
