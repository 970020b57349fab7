// Random trees that are hard to back up, and edits that are hard to detect, from a seed. Names are bytes.
import fs from "node:fs";
import { posixSupport } from "../../src/platform/posix.ts";
import type { Random } from "../../src/testing/index.ts";
import { isRoot } from "../plain-user.ts";

const support = posixSupport();
if (!support.ok) throw new Error(`these tests need libc: ${support.reason}`);
const { posix } = support;

export interface HostileTree {
  /** Adds a path of a random kind. */
  add(): void;
  /** Makes one random edit. */
  edit(): void;
}

export interface HostileTreeOptions {
  /** Largest file in bytes. */
  readonly maxBytes?: number;
  /** Names that match secret patterns. */
  readonly secrets?: boolean;
}

const NAMES: readonly (string | Buffer)[] = [
  "plain",
  "with space",
  " leading and trailing ",
  "new\nline",
  "tab\tand\\backslash",
  "quote'\"",
  "-rf",
  "*?[a]{b,c}",
  "ünïcode-ß-日本-🦀",
  "\ufeffbom",
  "\ufffdreplacement",
  Buffer.from([0x66, 0xff, 0xfe, 0x6f]),
  Buffer.from([0x80]),
  Buffer.from("latin1-é", "latin1"),
  Buffer.from([0xed, 0xb2, 0x80, 0x78]),
  ".wh.gone",
  ".wh..wh..opq",
  ".wh.",
  ".lazarus.wh.real",
  "n".repeat(250),
  "é".repeat(120),
  "database-wal",
  "database",
  ".gitignore-not",
];
const SECRET_NAMES = [".env", "id_rsa", "server.pem", ".ssh"];
const SIZES = [0, 1, 511, 512, 513, 4096, 5000, 70_000, 300_000];

export function createHostileTree(
  root: string,
  random: Random,
  options: HostileTreeOptions = {},
): HostileTree {
  const names = options.secrets ? [...NAMES, ...SECRET_NAMES, ...SECRET_NAMES] : NAMES;
  let serial = 0;

  const join = (directory: Buffer, name: Buffer) => Buffer.concat([directory, Buffer.from("/"), name]);
  const newName = (): Buffer => {
    const chosen = random.pick(names);
    const bytes = typeof chosen === "string" ? Buffer.from(chosen) : chosen;
    if (bytes.length > 240 || (options.secrets && random.chance(0.5))) return bytes;
    return random.chance(0.4) ? bytes : Buffer.concat([bytes, Buffer.from(String(serial++))]);
  };

  const all = (): { path: Buffer; stat: fs.Stats }[] => {
    const found: { path: Buffer; stat: fs.Stats }[] = [];
    const visit = (directory: Buffer) => {
      for (const name of fs.readdirSync(directory, { encoding: "buffer" })) {
        const path = join(directory, name);
        if (path.toString("latin1").endsWith("/worktree/.git")) continue;
        const stat = fs.lstatSync(path);
        found.push({ path, stat });
        if (stat.isDirectory()) visit(path);
      }
    };
    visit(Buffer.from(root));
    return found;
  };
  const pick = (wanted: (stat: fs.Stats) => boolean): Buffer | undefined => {
    const found = all().filter(({ stat }) => wanted(stat));
    return found.length === 0 ? undefined : random.pick(found).path;
  };
  const isFile = (stat: fs.Stats) => stat.isFile();
  const directory = () => {
    const chosen = pick((stat) => stat.isDirectory());
    return chosen === undefined || random.chance(0.2) ? Buffer.from(root) : chosen;
  };
  /** An unused path, or undefined if it exists or is too long. */
  const place = (): Buffer | undefined => {
    const path = join(directory(), newName());
    return path.length > 3500 || fs.lstatSync(path, { throwIfNoEntry: false }) ? undefined : path;
  };

  const content = (size: number): Buffer => {
    if (random.chance(0.5)) return Buffer.alloc(size, random.int(0, 255));
    const block = Buffer.from(random.bytes(Math.min(size, 4096)));
    return Buffer.alloc(size, block.length === 0 ? 0 : block);
  };
  const size = () => {
    const maxBytes = options.maxBytes ?? 300_000;
    if (maxBytes > 1 << 20 && random.chance(0.15)) return random.int(1 << 20, maxBytes);
    return Math.min(maxBytes, random.pick(SIZES));
  };
  const someTime = (): bigint => {
    const seconds = random.pick([
      0n,
      -1n,
      -86_400n * 365n,
      1_700_000_000n,
      7_258_118_400n,
      BigInt(random.int(0, 2 ** 31 - 1)),
    ]);
    return seconds * 1_000_000_000n + BigInt(random.pick([0, 1, 999_999_999, random.int(0, 999_999_999)]));
  };
  const touch = (path: Buffer) => posix.setTimes(path, someTime(), someTime());
  /** Runs `work` on a file that may be read-only; without root, it is made writable during that time. */
  const writable = (path: Buffer, work: () => void) => {
    const mode = fs.lstatSync(path).mode & 0o7777;
    if (!isRoot) fs.chmodSync(path, mode | 0o200);
    work();
    if (!isRoot) fs.chmodSync(path, mode);
  };
  const changeAttributes = (path: Buffer, stat: fs.Stats) => {
    if (stat.isSymbolicLink()) return;
    const bits = random.chance(0.2) ? 0o7777 : random.int(0, 0o7777);
    if (isRoot && random.chance(0.3)) {
      const id = () => random.pick([0, 1, 1000, 65_534, 3_000_000]);
      fs.lchownSync(path, id(), id());
    }
    const needed = isRoot ? 0 : stat.isDirectory() ? 0o700 : 0o400;
    fs.chmodSync(path, bits | needed);
    if (!random.chance(0.2)) return;
    const attribute = { name: `user.lab${random.int(0, 2)}`, value: random.bytes(random.int(0, 60)) };
    writable(path, () => {
      try {
        posix.setXattr(path, attribute.name, attribute.value);
      } catch {
        // Not supported by every file system and file type.
      }
    });
  };

  const makeSparse = (path: Buffer) => {
    const fd = fs.openSync(path, "w");
    try {
      const length = random.int(1, options.maxBytes ?? 300_000) + 100_000;
      fs.ftruncateSync(fd, length);
      for (let i = random.int(0, 3); i > 0; i -= 1) {
        const at = random.int(0, length - 1);
        fs.writeSync(fd, content(Math.min(random.int(1, 9000), length - at)), 0, undefined, at);
      }
    } finally {
      fs.closeSync(fd);
    }
  };
  const kinds: readonly ((path: Buffer) => void)[] = [
    (path) => fs.writeFileSync(path, content(size())),
    (path) => fs.writeFileSync(path, content(size())),
    (path) => fs.mkdirSync(path),
    (path) => fs.mkdirSync(path),
    (path) =>
      fs.symlinkSync(random.pick(["nowhere", "/etc/passwd", ".", "../..", "plain", "a".repeat(180)]), path),
    (path) => fs.symlinkSync(Buffer.from([0x2f, 0xff, 0x0a, 0xfe]), path),
    (path) => posix.makeFifo(path, 0o644),
    makeSparse,
    (path) => {
      const target = pick(isFile);
      if (target !== undefined) fs.linkSync(target, path);
    },
  ];
  const make = (path: Buffer) => {
    random.pick(kinds)(path);
    const stat = fs.lstatSync(path, { throwIfNoEntry: false });
    if (stat === undefined) return;
    if (random.chance(0.5)) changeAttributes(path, stat);
    if (random.chance(0.5)) touch(path);
  };
  const remove = (path: Buffer) => fs.rmSync(path, { recursive: true, force: true });
  const rewrite = (path: Buffer, bytes: Buffer) => {
    const fd = fs.openSync(path, "r+");
    try {
      fs.writeSync(fd, bytes, 0, bytes.length, 0);
    } finally {
      fs.closeSync(fd);
    }
  };

  const onFile = (act: (path: Buffer) => void) => () => {
    const path = pick(isFile);
    if (path !== undefined) act(path);
  };
  const onAny = (act: (path: Buffer) => void) => () => {
    const path = pick(() => true);
    if (path !== undefined) act(path);
  };
  const edits: readonly (() => void)[] = [
    () => {
      const path = place();
      if (path !== undefined) make(path);
    },
    // In place, with the same size and time: only ctime changes.
    onFile((path) => {
      const { size: length, mtimeNs, atimeNs } = fs.lstatSync(path, { bigint: true });
      writable(path, () => rewrite(path, content(Math.min(Number(length), 300_000))));
      posix.setTimes(path, atimeNs, mtimeNs);
    }),
    onFile((path) => writable(path, () => rewrite(path, content(size())))),
    onFile((path) => writable(path, () => fs.appendFileSync(path, content(random.int(1, 3000))))),
    onFile((path) => writable(path, () => fs.truncateSync(path, random.int(0, 5000)))),
    // A new inode with the same content, mode and time.
    onFile((path) => {
      const stat = fs.lstatSync(path, { bigint: true });
      const copy = Buffer.concat([path.subarray(0, path.lastIndexOf(0x2f) + 1), Buffer.from("copy")]);
      if (fs.lstatSync(copy, { throwIfNoEntry: false })) return;
      fs.copyFileSync(path, copy);
      fs.chmodSync(copy, Number(stat.mode) & 0o7777);
      posix.setTimes(copy, stat.atimeNs, stat.mtimeNs);
      fs.renameSync(copy, path);
    }),
    onAny(remove),
    onFile(remove),
    // A path changes its type.
    onAny((path) => {
      remove(path);
      make(path);
    }),
    onAny((path) => {
      const target = place();
      if (target === undefined || target.subarray(0, path.length + 1).equals(join(path, Buffer.alloc(0))))
        return;
      fs.renameSync(path, target);
    }),
    // Two names are swapped.
    () => {
      const [a, b] = [pick(isFile), pick(isFile)];
      if (a === undefined || b === undefined || a.equals(b)) return;
      const between = Buffer.concat([Buffer.from(root), Buffer.from("/between")]);
      fs.renameSync(a, between);
      fs.renameSync(b, a);
      fs.renameSync(between, b);
    },
    onAny((path) => changeAttributes(path, fs.lstatSync(path))),
    onAny(touch),
    // Hard links are replaced.
    () => {
      const [a, b] = [pick(isFile), pick(isFile)];
      if (a === undefined || b === undefined || a.equals(b)) return;
      remove(b);
      if (fs.existsSync(a)) fs.linkSync(a, b);
    },
  ];

  return {
    add() {
      const path = place();
      if (path !== undefined) make(path);
    },
    edit: () => random.pick(edits)(),
  };
}
