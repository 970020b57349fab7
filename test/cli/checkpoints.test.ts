// The checkpoint commands through the real command line: stdout, stderr and exit codes.
import { spawnSync } from "node:child_process";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { listTree, PYTHON } from "../snapshot/list-tree.ts";
import { reportSkipped } from "../snapshot/tools.ts";
import { createWorld, type World } from "./hermetic.ts";

let world: World;
let ids: string[];
const vault = () => join(world.home, "vault", "inbox");

function runOk(line: string): string {
  const { exit, stdout, stderr } = world.run(line.split(" "));
  expect(exit, `lazarus ${line}: ${stderr}`).toBe(0);
  return stdout;
}

beforeAll(() => {
  world = createWorld();
  runOk("init inbox");
  world.write("home/missions/inbox/worktree/notes.txt", "one\ntwo\n");
  runOk("checkpoint inbox -m first");
  world.write("home/missions/inbox/worktree/notes.txt", "one\n2\n");
  world.write("home/missions/inbox/worktree/\u001b[31mred", "terminal escapes in a name\n");
  runOk("checkpoint inbox -m second");
  runOk("checkpoint inbox");
  ids = (world.json("checkpoints inbox --json").checkpoints as { checkpoint_id: string }[]).map(
    (each) => each.checkpoint_id,
  );
  expect(ids).toHaveLength(3);
});
afterAll(() => world[Symbol.dispose]());

describe("checkpoints", () => {
  it("are listed in a table of at most 80 columns", () => {
    const lines = runOk("checkpoints inbox").trimEnd().split("\n");
    expect(lines[0]).toMatch(/^CHECKPOINT +AGE +REASON +SIZE +STORED +MARKS +MESSAGE$/);
    expect(lines).toHaveLength(4);
    for (const line of lines) expect(line.length).toBeLessThanOrEqual(80);
    expect(runOk("checkpoints inbox -n 1")).toContain(ids[2]);
    expect(runOk("checkpoints inbox -n 1")).not.toContain(ids[1]);
    expect(world.run(["checkpoints", "inbox", "-n", "0"])).toMatchObject({ exit: 0, stdout: "", stderr: "" });
  });

  it("exits 6 for an unknown mission", () => {
    expect(world.run(["checkpoints", "nobody"])).toMatchObject({ exit: 6, stdout: "" });
    expect(existsSync(join(world.home, "vault", "nobody"))).toBe(false);
  });
});

describe("an unknown mission", () => {
  it.each(["restore", "undo", "diff", "show", "verify", "prune", "pin", "unpin", "drill", "export", "fork"])(
    "%s: exits 6, suggests a similar mission, and creates nothing",
    async (name) => {
      const { exit, stdout, stderr } = await world.call([
        name,
        "inbux",
        ...(name === "fork" ? ["other"] : []),
      ]);
      expect([exit, stdout]).toEqual([6, ""]);
      expect(stderr).toBe(
        "error: there is no mission inbux; did you mean inbox?\n  try: lazarus status, to list all missions\n",
      );
      expect(existsSync(join(world.home, "vault", "inbux"))).toBe(false);
    },
  );

  it("a missing vault is an error, because the registry lists its checkpoints", () => {
    const away = join(world.home, "away");
    renameSync(vault(), away);
    for (const line of ["restore inbox", "checkpoints inbox", "show inbox", "prune inbox"]) {
      const { exit, stderr } = world.run(line.split(" "));
      expect(exit, line).toBe(8);
      expect(stderr).toContain(`the registry lists 3 checkpoints in it, the newest ${ids[2]}`);
      expect(stderr).toContain("restore the vault directory");
    }
    for (const line of ["verify", "verify inbox"]) {
      const { exit, stdout } = world.run(line.split(" "));
      expect(exit, line).toBe(8);
      expect(stdout).toContain("damaged  inbox: 3 of 3 checkpoints affected");
    }
    const fresh = world.run(["checkpoint", "inbox"]);
    expect(fresh.exit).toBe(0);
    expect(fresh.stderr).toContain("this checkpoint starts a new vault");
    rmSync(vault(), { recursive: true });
    renameSync(away, vault());
    runOk("registry rebuild");
    expect(runOk("verify inbox")).toMatch(/^good/);
  });
});

describe("show", () => {
  it("prints what a checkpoint contains and which one has the same content", () => {
    expect(runOk(`show inbox ${ids[0]}`)).toMatch(/message +first/);
    expect(runOk("show inbox")).toContain(`unchanged since ${ids[1]}`);
    expect(world.json(`show inbox ${ids[0]} --json`)).toMatchObject({
      schema: "lazarus.show/1",
      checkpoint_id: ids[0],
      flaws: [],
    });
  });
});

describe("diff", () => {
  it("lists changes, and prints changed lines with --content", () => {
    const names = runOk(`diff inbox ${ids[0]} ${ids[1]}`);
    expect(names).toContain("M worktree/notes.txt\n");
    expect(names).toContain("A worktree/\\u{1b}[31mred\n");
    expect(runOk(`diff inbox ${ids[0]} ${ids[1]} --content --path worktree/notes.txt`)).toBe(
      "M worktree/notes.txt\n\n--- a/worktree/notes.txt\n+++ b/worktree/notes.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n",
    );
  });

  it("accepts the same paths as restore: inside the cell, and known", () => {
    const absolute = join(world.home, "missions/inbox/worktree/notes.txt");
    expect(runOk(`diff inbox ${ids[0]} ${ids[1]} --path ${absolute}`)).toBe("M worktree/notes.txt\n");
    expect(world.run(["diff", "inbox", "--path", "/etc"])).toMatchObject({ exit: 2, stdout: "" });
    const unknown = world.run(["diff", "inbox", "--path", "old/notes.txt"]);
    expect(unknown).toMatchObject({ exit: 6, stdout: "" });
    expect(unknown.stderr).toContain('similar: "worktree/notes.txt"');
  });

  it("compares with the current cell", () => {
    expect(runOk("diff inbox")).toBe("");
    const file = world.write("home/missions/inbox/worktree/later", "x");
    expect(runOk("diff inbox")).toBe("A worktree/later\n");
    rmSync(file);
  });
});

describe("pin and prune", () => {
  it("reports how much was freed, is stored, and is free on the disk", () => {
    const { stderr } = world.run(["prune", "inbox"]);
    expect(stderr).toMatch(/^freed 0 B; [\d.]+ KiB stored, [\d.]+ \w+ free on the disk of \/.*\/vault\n/);
  });

  const keepOne = "--keep-last 1 --keep-hourly 0 --keep-daily 0 --keep-weekly 0 --keep-within 0";

  it("a dry run lists what would be removed and why the rest is kept", () => {
    runOk(`pin inbox ${ids[0]}`);
    const before = readFileSync(join(vault(), "index.json"), "utf8");
    const text = runOk(`prune inbox --dry-run ${keepOne}`);
    expect(text).toContain(`- ${ids[1]}  manual: no rule keeps it`);
    expect(text).toContain(`${ids[0]}  manual: pinned`);
    expect(readFileSync(join(vault(), "index.json"), "utf8")).toBe(before);
    runOk(`unpin inbox ${ids[0]}`);
  });
});

describe("export and import", () => {
  it("says how to unpack extended attributes, where there are some", () => {
    const unpack = (line: string) =>
      world.run(line.split(" ")).stderr.match(/unpack with: (tar .*)\n/)?.[1] ?? "";
    expect(unpack("export inbox -o plain.tar.gz")).toMatch(/^tar xzf \/.*plain.tar.gz$/);
    runOk("init attributes");
    const file = world.write("home/missions/attributes/worktree/file", "");
    const set = `import os; os.setxattr(${JSON.stringify(file)}, "user.color", b"red")`;
    const { status, stderr } = spawnSync(PYTHON, ["-c", set], { encoding: "utf8" });
    if (status !== 0) {
      reportSkipped("the command that unpacks extended attributes", stderr.trim().split("\n").at(-1)!);
      return;
    }
    runOk("checkpoint attributes");
    const command = unpack("export attributes -o attributes.tar.gz");
    expect(command).toMatch(/^tar --xattrs -xpzf \//);
    mkdirSync(world.path("unpacked"));
    expect(spawnSync("sh", ["-c", command], { cwd: world.path("unpacked") }).status).toBe(0);
    expect(listTree(world.path("unpacked", "worktree"))).toEqual(
      listTree(join(world.missions, "attributes/worktree")),
    );
  });

  it("round-trips a cell under another name", () => {
    runOk(`export inbox ${ids[1]} -o inbox.tar.gz`);
    const file = join(world.cwd, "inbox.tar.gz");
    expect(statSync(file).mode & 0o777).toBe(0o600);
    expect(world.run(["export", "inbox", "-o", "inbox.tar.gz"])).toMatchObject({ exit: 7 });
    expect(world.shell(`lazarus export inbox ${ids[1]} -o - | tar tz | grep -c notes.txt`).stdout).toBe(
      "1\n",
    );
    runOk("import inbox.tar.gz --mission outbox");
    expect(world.read("home/missions/outbox/worktree/notes.txt")).toBe("one\n2\n");
    expect(JSON.parse(world.read("home/missions/outbox/meta/mission.json")).mission_id).toBe("outbox");
    expect(world.run(["import", "inbox.tar.gz", "--mission", "outbox"])).toMatchObject({ exit: 7 });
    expect(world.run(["import", "nowhere.tar.gz", "--mission", "x"])).toMatchObject({ exit: 6 });
    expect(world.run(["import", "inbox.tar.gz"])).toMatchObject({ exit: 2 });
    runOk(`import ${vault()}:${ids[0]} --mission first-again`);
    expect(world.read("home/missions/first-again/worktree/notes.txt")).toBe("one\ntwo\n");
  });
});

describe("verify and registry rebuild", () => {
  it("verify reports damage with exit code 8, and rebuild repairs the index", () => {
    expect(runOk("verify --deep")).toMatch(/^good {2}first-again/m);
    const index = join(vault(), "index.json");
    const whole = readFileSync(index, "utf8");
    writeFileSync(index, whole.replace('"second"', '"sec0nd"'));
    const bad = world.run(["verify", "inbox"]);
    expect(bad.exit).toBe(8);
    expect(bad.stdout).toMatch(/^damaged {2}inbox: the index; (\d+) of \1 checkpoints can be recovered/);
    expect(bad.stdout).toContain("index.json");
    expect(bad.stdout).toContain("lazarus registry rebuild");
    const rebuilt = world.run(["registry", "rebuild"]);
    expect(rebuilt.exit).toBe(0);
    expect(rebuilt.stderr).toContain("the damaged file is kept at");
    expect(readFileSync(index, "utf8")).toBe(whole);
    expect(runOk("verify inbox --deep")).toMatch(/^good/);
  });

  it("verify names a damaged layer and the checkpoints it affects", () => {
    const { layers } = world.json(`show inbox ${ids[1]} --json`) as { layers: { digest: string }[] };
    const blob = join(vault(), "blobs", "sha256", layers.at(-1)!.digest.slice(7));
    const bytes = readFileSync(blob);
    const wrong = Buffer.from(bytes);
    wrong[40]! ^= 1;
    writeFileSync(blob, wrong);
    const { exit, stdout } = world.run(["verify", "inbox", "--deep", "--json"]);
    expect(exit).toBe(8);
    const [report] = JSON.parse(stdout).missions;
    expect(report).toMatchObject({ newest_good: ids[0], hurt: [ids[1], ids[2]] });
    writeFileSync(blob, bytes);
  });

  it("leaves no temporary files", () => {
    expect(readdirSync(world.missions).sort()).toEqual(["attributes", "first-again", "inbox", "outbox"]);
    const litter = readdirSync(world.home, { recursive: true, encoding: "utf8" }).filter((name) =>
      name.endsWith(".tmp"),
    );
    expect(litter).toEqual([]);
  });
});

it("explains and stops an agent from its directory, which was deleted", () => {
  const { exit, stdout } = world.shell(`
    mkdir app && cd app; lazarus run --here -q -- sh -c 'kill -9 $$'; rm -rf ../app
    lazarus why app && lazarus stop app
  `);
  expect(exit).toBe(0);
  expect(stdout).toContain("app was killed by SIGKILL");
});

it("works in a current directory that was deleted with its cell", () => {
  const { exit, stdout, stderr } = world.shell(`
    lazarus init lost >/dev/null 2>&1 && cd ${world.missions}/lost/worktree && echo kept > file
    lazarus checkpoint lost >/dev/null 2>&1 && rm -rf ${world.missions}/lost
    lazarus restore lost 2>&1 && cat ${world.missions}/lost/worktree/file
  `);
  expect({ exit, last: stdout.trimEnd().split("\n").at(-1), stderr }).toEqual({
    exit: 0,
    last: "kept",
    stderr: "",
  });
});
