// ls, cat, versions, find and grep: reading checkpoints without restoring them. The files that a checkpoint should have
// are kept in the test as plain values.
import {
  closeSync,
  existsSync,
  ftruncateSync,
  mkdirSync,
  openSync,
  rmSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createWorld, type Ending, type World } from "./hermetic.ts";

const SPARSE_BYTES = 3 << 20;

let world: World;
let ids: string[];
const cell = (...parts: string[]) => join(world.missions, "inbox", ...parts);
const notes = (text: string) => world.write("home/missions/inbox/worktree/notes.md", text);

async function call(...words: string[]): Promise<Ending> {
  return await world.call(words);
}

async function runOk(...words: string[]): Promise<string> {
  const { exit, stdout, stderr } = await call(...words);
  expect(exit, `lazarus ${words.join(" ")}: ${stderr}`).toBe(0);
  return stdout;
}

interface Documents {
  readonly checkpoints: readonly { readonly checkpoint_id: string }[];
  readonly versions: readonly {
    readonly first_checkpoint_id: string;
    readonly last_checkpoint_id: string;
    readonly entry: { readonly size: number } | null;
  }[];
  readonly paths: readonly {
    readonly path: string;
    readonly checkpoint_id: string;
    readonly deleted: boolean;
  }[];
  readonly content: string;
  readonly encoding: BufferEncoding;
}

async function json(...words: string[]): Promise<Documents> {
  return JSON.parse(await runOk(...words, "--json"));
}

beforeAll(async () => {
  world = createWorld();
  await runOk("init", "inbox");
  const save = () => runOk("checkpoint", "inbox");
  mkdirSync(cell("worktree", "src"));
  notes("first draft\n");
  world.write("home/missions/inbox/worktree/src/app.ts", "export const secretPlan = 1;\n");
  world.write("home/missions/inbox/worktree/src/gone.ts", "the lost function\n");
  world.write("home/missions/inbox/worktree/\u001b[31mred.md", "escapes\n");
  symlinkSync("notes.md", cell("worktree", "link"));
  world.write("home/missions/inbox/worktree/binary", "NEEDLE\0\u0001");
  const sparse = openSync(cell("worktree", "sparse"), "w");
  ftruncateSync(sparse, SPARSE_BYTES);
  writeSync(sparse, "NEEDLE", SPARSE_BYTES / 2);
  closeSync(sparse);
  await save();
  notes("second draft\nNEEDLE here\n");
  rmSync(cell("worktree", "src", "gone.ts"));
  await save();
  // Unchanged: shares the manifest before it.
  await save();
  rmSync(cell("worktree", "notes.md"));
  await save();
  notes("second draft\nNEEDLE here\n");
  await save();
  ids = (await json("checkpoints", "inbox")).checkpoints.map((each) => each.checkpoint_id);
  expect(ids).toHaveLength(5);
});
afterAll(() => world[Symbol.dispose]());

describe("ls", () => {
  it("lists the top of the latest checkpoint", async () => {
    expect(await runOk("ls", "inbox")).toBe("artifacts/\nconfig/\nlogs/\nmeta/\nstate/\nworktree/\n");
  });

  it("takes a checkpoint, a path, or both", async () => {
    const src = "worktree/src/app.ts\n";
    expect(await runOk("ls", "inbox", "worktree/src")).toBe(src);
    expect(await runOk("ls", `inbox:${ids[1]}`, "worktree/src")).toBe(src);
    expect(await runOk("ls", "inbox", ids[0]!, "worktree/src/")).toBe(`${src}worktree/src/gone.ts\n`);
    expect(await runOk("ls", "inbox", ids[0]!)).toContain("worktree/\n");
  });

  it("says which checkpoint it chose, unless it was named in full", async () => {
    const { stderr } = await call("ls", "inbox", ids[0]!.slice(-6));
    expect(stderr).toMatch(new RegExp(`^checkpoint ${ids[0]} \\(.*Z, .* ago, manual\\)\n$`));
    expect((await call("ls", "inbox", ids[0]!)).stderr).toBe("");
  });

  it("lists everything below with --recursive, with sizes and link targets with --long", async () => {
    const text = await runOk("ls", "inbox", "worktree", "-r", "-l");
    expect(text).toMatch(/^-rw.{7} {2} +25 {2}.*Z {2}worktree\/notes\.md$/m);
    expect(text).toMatch(/^l.*worktree\/link -> notes\.md$/m);
    expect(text).toMatch(/worktree\/src\/app\.ts$/m);
    expect(text).not.toContain("\u001b");
  });

  it("names similar paths for one that does not exist", async () => {
    const { exit, stderr } = await call("ls", "inbox", ids[0]!, "app.ts");
    expect(exit).toBe(6);
    expect(stderr).toContain('similar: "worktree/src/app.ts"');
  });
});

describe("cat", () => {
  it("prints a file as it was", async () => {
    expect(await runOk("cat", "inbox", "worktree/notes.md")).toBe("second draft\nNEEDLE here\n");
    expect(await runOk("cat", `inbox:${ids[0]}`, "worktree/notes.md")).toBe("first draft\n");
    expect(await runOk("cat", `inbox:${ids[0]!.slice(-6)}`, cell("worktree", "notes.md"))).toBe(
      "first draft\n",
    );
    expect(await json("cat", `inbox:${ids[0]}`, "worktree/notes.md")).toMatchObject({
      checkpoint_id: ids[0],
      encoding: "utf8",
      content: "first draft\n",
    });
  });

  it("prints the holes of a sparse file", async () => {
    const { content, encoding } = await json("cat", "inbox", "worktree/sparse");
    const expected = Buffer.alloc(SPARSE_BYTES);
    expected.write("NEEDLE", SPARSE_BYTES / 2);
    expect(Buffer.from(content, encoding).equals(expected)).toBe(true);
  });

  it.each([
    ["worktree", "not a file"],
    [".", "not a file"],
    ["worktree/link", 'a symlink to "notes.md"'],
  ])("refuses %s: it is %s", async (path, what) => {
    const { exit, stderr } = await call("cat", "inbox", path);
    expect(exit).toBe(6);
    expect(stderr).toContain(`is ${what}`);
  });
});

describe("versions", () => {
  it("lists when a file changed, was removed, and came back", async () => {
    const { versions } = await json("versions", "inbox", "worktree/notes.md");
    expect(
      versions.map((each) => [each.first_checkpoint_id, each.last_checkpoint_id, each.entry?.size ?? null]),
    ).toEqual([
      [ids[0], ids[0], 12],
      [ids[1], ids[2], 25],
      [ids[3], ids[3], null],
      [ids[4], ids[4], 25],
    ]);
    const text = await runOk("versions", "inbox", "worktree/notes.md");
    for (const word of ["first seen", "changed", "removed", "added again"]) expect(text).toContain(word);
  });

  it("says how to look at a version, which is not cat for a directory", async () => {
    const { stderr } = await call("versions", "inbox", "worktree/src");
    const hint = /look at one with: lazarus (.*)$/m.exec(stderr)![1]!;
    expect(await runOk(...hint.split(" "))).toContain("worktree/src");
  });

  it("suggests similar paths for an unknown one", async () => {
    const { exit, stderr } = await call("versions", "inbox", "gone.ts");
    expect(exit).toBe(6);
    expect(stderr).toContain('similar: "worktree/src/gone.ts"');
  });
});

describe("find", () => {
  it("finds deleted files and the newest checkpoint that has them", async () => {
    const { paths } = await json("find", "inbox", "*.ts");
    expect(paths.map((each) => [each.path, each.checkpoint_id, each.deleted])).toEqual([
      ["worktree/src/app.ts", ids[4], false],
      ["worktree/src/gone.ts", ids[0], true],
    ]);
    expect(await runOk("find", "inbox", "*.ts", "--deleted")).toMatch(/gone\.ts \(deleted\)/);
  });

  it("finds a name that looks like a glob, and refuses a pattern that names nothing", async () => {
    using other = createWorld();
    other.write("home/missions/m/worktree/page[1].tsx", "one\n");
    const run = (...words: string[]) => other.call(words);
    await run("init", "m");
    await run("checkpoint", "m");
    expect((await run("find", "m", "page[1].tsx")).stdout).toContain("worktree/page[1].tsx");
    for (const pattern of ["", "/", "//"]) {
      expect(await run("find", "m", pattern)).toMatchObject({ exit: 2, stdout: "" });
    }
    expect((await run("versions", "m", "worktree/it's.md")).stderr).toContain(
      String.raw`try: lazarus find m '*it'\''s.md*'`,
    );
  });

  it("prints nothing for a pattern without a match", async () => {
    expect(await call("find", "inbox", "*.nothing")).toMatchObject({ exit: 0, stdout: "" });
  });
});

describe("grep", () => {
  it("finds text in versions that no longer exist", async () => {
    expect(await runOk("grep", "inbox", "lost function")).toBe(
      `${ids[0]}:worktree/src/gone.ts:1:the lost function\n`,
    );
    expect(await runOk("grep", "inbox", "FIRST", "-i")).toBe(`${ids[0]}:worktree/notes.md:1:first draft\n`);
  });

  it("prints the newest version first, and names binary files", async () => {
    const text = await runOk("grep", "inbox", "NEEDLE", "--path", "worktree");
    expect(text.split("\n").slice(0, 4)).toEqual([
      `${ids[4]}:worktree/binary: binary file matches`,
      `${ids[4]}:worktree/notes.md:2:NEEDLE here`,
      `${ids[2]}:worktree/notes.md:2:NEEDLE here`,
      `${ids[4]}:worktree/sparse: binary file matches`,
    ]);
  });

  it("searches one checkpoint, and takes regular expressions", async () => {
    expect(await runOk("grep", `inbox:${ids[0]}`, "f.r+st", "-e")).toContain("notes.md:1:first draft");
    expect(await call("grep", `inbox:${ids[1]}`, "first draft")).toMatchObject({ exit: 6, stdout: "" });
    expect((await call("grep", "inbox", "(", "-e")).exit).toBe(2);
    expect((await call("grep", "inbox", "f.r+st")).exit).toBe(6);
  });
});

describe("a damaged checkpoint", () => {
  it("is named, and the others are searched", async () => {
    using other = createWorld();
    const run = async (...words: string[]) => {
      const ending = await other.call(words);
      expect(ending.exit, ending.stderr).toBe(0);
      return ending;
    };
    await run("init", "m");
    other.write("home/missions/m/worktree/a.txt", "one\n");
    await run("checkpoint", "m");
    other.write("home/missions/m/worktree/a.txt", "two\n");
    await run("checkpoint", "m");
    const list = JSON.parse((await run("checkpoints", "m", "--json")).stdout).checkpoints;
    rmSync(other.path("home", "vault", "m", "blobs", "sha256", list[0].manifest.slice(7)));
    const { stdout, stderr } = await run("versions", "m", "worktree/a.txt");
    expect(stdout).toContain(list[1].checkpoint_id);
    expect(stderr).toContain(`cannot be read: ${list[0].checkpoint_id}; see: lazarus verify m`);
  });
});

describe("a deleted file", () => {
  it("is found for ls, cat, diff and restore: they name a command that works as printed", async () => {
    using other = createWorld();
    const run = (...words: string[]) => other.call(words);
    const file = "worktree/gone for good.ts";
    await run("init", "m");
    other.write(`home/missions/m/${file}`, "the lost function\n");
    const first = (await run("checkpoint", "m")).stdout.trim();
    rmSync(other.path("home", "missions", "m", file));
    await run("checkpoint", "m");
    for (const words of [
      ["ls", "m", file],
      ["cat", "m", file],
      ["diff", "m", "--path", file],
      ["restore", "m", "--path", file, "--to", other.path("elsewhere")],
      ["restore", "m", "--path", file],
    ]) {
      const { exit, stderr } = await run(...words);
      expect(exit).toBe(6);
      expect(stderr).toMatch(new RegExp(`"${file}" is not in .*; the newest .* that has it is ${first}\n`));
      const hint = /^ {2}try: lazarus (.*)$/m.exec(stderr)![1]!;
      const [, before, after = ""] = new RegExp(`^(.*)'${file}'(.*)$`).exec(hint)!;
      const typed = [...before!.trim().split(" "), file, ...after.split(" ").filter(Boolean)];
      expect(typed[0]).toBe(words[0]);
      expect(await run(...typed)).toMatchObject({ exit: 0 });
    }
    expect(existsSync(other.path("home", "missions", "m", file))).toBe(true);
  });
});

it.skipIf(process.platform !== "linux")("takes names that are not UTF-8 as they are typed", async () => {
  using other = createWorld();
  await other.call(["init", "m"]);
  const { exit, stdout, stderr } = other.shell(`
    cd "$LAZARUS_HOME/missions/m/worktree"
    bad=$(printf 'b\\377d'); echo content > "$bad"
    lazarus checkpoint m -q && lazarus cat m "$bad" && lazarus versions m "$bad" | wc -l
    rm "$bad" && lazarus restore m -q --path "worktree/$bad" && cat "$bad"`);
  expect([exit, stderr]).toEqual([0, expect.any(String)]);
  expect(stdout.match(/content/g)).toHaveLength(2);
  expect(stdout).toMatch(/^ *2$/m);
});
