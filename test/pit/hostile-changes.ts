// Changes that a checkpoint from a dirty set could get wrong where a walk does not: each leaves a tree that a careless comparison
// takes for the one before. In order, each on top of those before it.
import { execFileSync } from "node:child_process";
import fs from "node:fs";
import { join } from "node:path";
import { PYTHON } from "../snapshot/list-tree.ts";

export type HostileChange = readonly [name: string, change: (root: string) => void];

const python = (root: string, ...lines: string[]) =>
  execFileSync(PYTHON, ["-c", ["import os", ...lines].join("\n")], { cwd: root });

/** What the changes start from. */
export function createFiles(root: string): void {
  for (const path of ["a/b", "c", "d/e/f", "empty", "modes"])
    fs.mkdirSync(join(root, path), { recursive: true });
  for (const path of ["a/one", "a/b/two", "c/three", "d/e/f/four", "modes/file", "swap-1", "swap-2"])
    fs.writeFileSync(join(root, path), `${path}\n`);
  fs.symlinkSync("a/one", join(root, "link"));
}

const DEEP = Array.from({ length: 120 }, (_, i) => `level-${i}`).join("/");

export const HOSTILE_CHANGES: readonly HostileChange[] = [
  [
    "types swapped: file, directory, link and pipe",
    (root) => {
      const at = (path: string) => join(root, path);
      fs.rmSync(at("a/one"));
      fs.mkdirSync(at("a/one"));
      fs.writeFileSync(at("a/one/inside"), "1");
      fs.rmSync(at("c"), { recursive: true });
      fs.symlinkSync("a", at("c"));
      fs.rmSync(at("link"));
      fs.writeFileSync(at("link"), "a file now");
      fs.rmSync(at("empty"), { recursive: true });
      execFileSync("mkfifo", [at("empty")]);
    },
  ],
  [
    "hard links made, one name of each changed",
    (root) => {
      const at = (path: string) => join(root, path);
      fs.linkSync(at("a/b/two"), at("d/two"));
      fs.linkSync(at("a/b/two"), at("two"));
      fs.linkSync(at("link"), at("d/e/link"));
      fs.appendFileSync(at("d/two"), "through another name\n");
    },
  ],
  [
    "hard links broken, removed, and moved to another group",
    (root) => {
      const at = (path: string) => join(root, path);
      fs.copyFileSync(at("two"), at("copy"));
      fs.renameSync(at("copy"), at("two"));
      fs.rmSync(at("d/e/link"));
      fs.linkSync(at("swap-1"), at("d/e/link"));
      fs.linkSync(at("d/two"), at("d/three"));
    },
  ],
  [
    "files and directories renamed over each other",
    (root) => {
      const at = (path: string) => join(root, path);
      fs.renameSync(at("swap-1"), at("aside"));
      fs.renameSync(at("swap-2"), at("swap-1"));
      fs.renameSync(at("aside"), at("swap-2"));
      fs.renameSync(at("a/b"), at("aside"));
      fs.renameSync(at("d/e"), at("a/b"));
      fs.renameSync(at("aside"), at("d/e"));
      fs.mkdirSync(at("onto"));
      fs.renameSync(at("a/b/f"), at("onto"));
    },
  ],
  [
    "a tree replaced by a copy of itself",
    (root) => {
      const at = (path: string) => join(root, path);
      execFileSync("cp", ["-a", at("d"), at("copy")]);
      fs.rmSync(at("d"), { recursive: true });
      fs.renameSync(at("copy"), at("d"));
    },
  ],
  [
    "modes",
    (root) => {
      const at = (path: string) => join(root, path);
      fs.chmodSync(at("modes/file"), 0o6711);
      fs.chmodSync(at("modes"), 0o1777);
      fs.chmodSync(at("onto/four"), 0o400);
      fs.chmodSync(at("onto"), 0o500);
      if (process.getuid?.() === 0) fs.chownSync(at("swap-1"), 1, 2);
    },
  ],
  [
    "times, to the nanosecond, of files, directories and links",
    (root) =>
      python(
        root,
        'os.utime("modes/file", ns=(1, 1))',
        'os.utime("a", ns=(1500000000123456789, 1500000000987654321))',
        'os.utime("c", ns=(5, 4000000000000000007), follow_symlinks=False)',
        'os.utime("empty", ns=(5, 6))',
      ),
  ],
  [
    "content of the same length, with the old time",
    (root) =>
      python(
        root,
        'old = os.stat("link")',
        'open("link", "r+b").write(b"A FILE NOW")',
        'os.utime("link", ns=(old.st_atime_ns, old.st_mtime_ns))',
      ),
  ],
  [
    "holes made and filled",
    (root) =>
      python(
        root,
        'open("sparse", "wb").truncate(3 << 20)',
        'file = open("sparse", "r+b"); file.seek(1 << 20); file.write(b"x" * 4096); file.close()',
        'open("filled", "wb").truncate(1 << 20)',
        'open("filled", "r+b").write(b"\\0" * (1 << 20))',
      ),
  ],
  [
    "extended attributes set, where there are some",
    (root) =>
      python(
        root,
        "for path in ['modes/file', 'a', 'sparse']:",
        "    try: os.setxattr(path, 'user.k', os.fsencode(path)); os.setxattr(path, 'user.empty', b'')",
        "    except OSError: pass",
      ),
  ],
  [
    "extended attributes changed and removed",
    (root) =>
      python(
        root,
        "try: os.setxattr('a', 'user.k', b'\\xff\\0'); os.removexattr('sparse', 'user.k')",
        "except OSError: pass",
      ),
  ],
  [
    "a deep tree, then a change at its end",
    (root) => {
      fs.mkdirSync(join(root, DEEP), { recursive: true });
      fs.writeFileSync(join(root, DEEP, "end"), "1");
    },
  ],
  [
    "the end of the deep tree, and its middle moved to the top",
    (root) => {
      fs.writeFileSync(join(root, DEEP, "end"), "22");
      fs.renameSync(join(root, DEEP.split("/").slice(0, 60).join("/")), join(root, "half"));
    },
  ],
  [
    "names: long, with line breaks, like whiteouts, not UTF-8",
    (root) => {
      for (const name of ["n".repeat(255), "line\nbreak", ".wh.gone", " ", "é", "e\u0301"])
        fs.writeFileSync(join(root, name), name);
      fs.writeFileSync(Buffer.concat([Buffer.from(`${root}/`), Buffer.of(0xff, 0xfe)]), "bytes");
    },
  ],
  [
    "everything removed but one file",
    (root) => {
      execFileSync("chmod", ["-R", "u+rwX", join(root, "onto")]);
      for (const name of fs.readdirSync(root, { encoding: "buffer" }))
        if (name.toString("latin1") !== "swap-1" && name.toString("latin1") !== ".git")
          fs.rmSync(Buffer.concat([Buffer.from(`${root}/`), name]), { recursive: true });
    },
  ],
];
