// Bad ids, configs, permissions, heartbeats and disks: each gets a clear result, and nothing is lost.
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { giveToPlainUser, isRoot } from "../plain-user.ts";
import { createWorld, LAUNCHER, type World } from "./hermetic.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

const heartbeat = (mission = "m1") => join(world.missions, mission, "state", "heartbeat.json");
const summary = () => world.json("scan --json").summary;

describe("a hostile mission id", () => {
  const hostile = [
    "",
    ".",
    "..",
    "../escape",
    "a/../../escape",
    "/etc/passwd",
    "a\\b",
    ".hidden",
    "a b",
    "a\nb",
    "\x1b[2Jx",
    "$(touch pwned)",
    "`touch pwned`",
    "x".repeat(129),
    "x".repeat(100_000),
    "日本",
    "a\u202eb",
    "nul\u0001",
  ];

  it("is refused by every command with exit 2, and no path is created", async () => {
    for (const [number, id] of hostile.entries()) {
      const command = ["init", "heartbeat", "events"][number % 3]!;
      const { exit, stdout, stderr } = await world.call([command, "--", id]);
      expect({ id: id.slice(0, 20), exit, stdout }).toEqual({ id: id.slice(0, 20), exit: 2, stdout: "" });
      expect(stderr).toContain("is not a valid mission id");
      expect(stderr.length).toBeLessThan(500);
      expect(stderr.replaceAll("\n", "")).not.toMatch(/\p{Cc}|\u202e/u);
    }
    expect(readdirSync(world.home)).toEqual([]);
    expect(readdirSync(world.cwd)).toEqual([]);
  });

  it("that is a symlink out of the root is refused with exit 7, and nothing is written through it", () => {
    mkdirSync(world.missions);
    mkdirSync(world.path("outside"));
    symlinkSync(world.path("outside"), join(world.missions, "m1"));
    for (const command of ["init", "heartbeat"]) {
      const { exit, stderr } = world.run([command, "m1"]);
      expect(exit).toBe(7);
      expect(stderr).toContain("a link that leads outside");
    }
    expect(readdirSync(world.path("outside"))).toEqual([]);
  });

  it("that is a broken symlink is refused", () => {
    mkdirSync(world.missions);
    symlinkSync(world.path("nothing"), join(world.missions, "m1"));
    expect(world.run(["init", "m1"])).toMatchObject({ exit: 7 });
  });
});

describe("a config with wrong types", () => {
  it.each([
    [
      '{"stale_after_seconds": "180"}',
      'stale_after_seconds is string "180"; expected a number of seconds above 0',
    ],
    ['{"missions_root": ["a"]}', "missions_root is a list; expected a path (string)"],
    [
      '{"required_subdirs": {"a": 1}}',
      "required_subdirs is object {\"a\":1}; expected a list of directory names (strings without '/')",
    ],
    [
      '{"heartbeat_file": "../../etc/x"}',
      "heartbeat_file is string \"../../etc/x\"; expected a path below the cell (string without '..')",
    ],
    ["[1]", "JSON, but not an object; expected a JSON object"],
    ["{", "not JSON; expected a JSON object"],
  ])("%s exits 78 and names file, key and expected type", async (content, words) => {
    const file = world.write("cwd/lazarus.json", content);
    for (const line of ["scan", "config", "heartbeat m1", "init m1", "job check"]) {
      const { exit, stdout, stderr } = await world.call(line.split(" "));
      expect({ exit, stdout }).toEqual({ exit: 78, stdout: "" });
      expect(stderr.startsWith(`error: ${file}: ${words}\n`)).toBe(true);
    }
    expect(JSON.parse(world.run(["scan", "--json"]).stdout)).toMatchObject({
      schema: "lazarus.error/1",
      code: "CONFIG_INVALID",
    });
  });

  it("that is given explicitly but missing exits 78", () => {
    expect(world.show("scan --config none.json")).toMatchInlineSnapshot(`
      "exit 78
      ── stderr
      error: the config file <world>/cwd/none.json named by --config does not exist
        try: ls -l <world>/cwd/none.json, or omit --config to use the defaults
      "
    `);
  });
});

describe("unreadable directories", () => {
  /** Runs as an unprivileged user, to whom permissions apply. */
  const asUser = (words: string[]) => world.run(words, { asPlainUser: true });

  beforeEach(() => {
    chmodSync(world.directory, 0o755);
    giveToPlainUser(world.directory);
    for (const mission of ["bad", "good"]) expect(asUser(["init", mission]).exit).toBe(0);
  });
  afterEach(() => {
    spawnSync("chmod", ["-R", "u+rwx", world.directory]);
  });

  it("an unreadable cell is incomplete with a reason; the others are scanned", () => {
    chmodSync(join(world.missions, "bad"), 0);
    const report = JSON.parse(asUser(["scan", "--json"]).stdout);
    expect(report.summary).toMatchObject({ total_cells: 2, healthy: 1, incomplete: 1 });
    expect(report.cells[0]).toMatchObject({ mission_id: "bad", reason: "the cell cannot be read (EACCES)" });
  });

  it("a cell with an unreadable heartbeat is uninitialized", () => {
    chmodSync(heartbeat("bad"), 0);
    const report = JSON.parse(asUser(["scan", "--json"]).stdout);
    expect(report.cells[0]).toMatchObject({ status: "uninitialized", reason: "heartbeat: EACCES" });
  });

  it("an unreadable missions root exits 9 and names it", () => {
    chmodSync(world.missions, 0);
    const { exit, stderr } = asUser(["scan"]);
    expect(exit).toBe(9);
    expect(stderr).toContain(`error: reading the missions root ${world.missions}: permission denied`);
  });

  it("a read-only state directory fails a heartbeat with exit 9 and keeps the old one", () => {
    const before = readFileSync(heartbeat("bad"), "utf8");
    chmodSync(join(world.missions, "bad/state"), 0o500);
    const { exit, stderr } = asUser(["heartbeat", "bad"]);
    expect(exit).toBe(9);
    expect(stderr).toContain("permission denied");
    expect(readFileSync(heartbeat("bad"), "utf8")).toBe(before);
  });

  it("a read-only home fails init with exit 9; a read-only registry is a warning", () => {
    chmodSync(world.missions, 0o500);
    expect(asUser(["init", "new"]).exit).toBe(9);
    chmodSync(world.missions, 0o700);
    for (const name of readdirSync(world.home)) {
      if (name.startsWith("registry")) chmodSync(join(world.home, name), 0o400);
    }
    chmodSync(world.home, 0o500);
    const { exit, stderr } = asUser(["init", "new"]);
    expect(exit).toBe(0);
    expect(stderr).toContain("warning: cannot write the event log");
    expect(asUser(["doctor"]).exit).toBe(3);
  });
});

describe("an invalid heartbeat file", () => {
  const spoiled: [string, () => void][] = [
    ["a binary file", () => writeFileSync(heartbeat(), Buffer.from([0, 159, 146, 150]))],
    ["2 GB", () => truncateSync(heartbeat(), 2 ** 31)],
    [
      "a link out of the cell",
      () => {
        rmSync(heartbeat());
        writeFileSync(world.path("precious"), '{"timestamp": 9e9}');
        symlinkSync(world.path("precious"), heartbeat());
      },
    ],
    [
      "a FIFO without a writer",
      () => {
        rmSync(heartbeat());
        spawnSync("mkfifo", [heartbeat()]);
      },
    ],
  ];

  it.each(spoiled)(
    "(%s) is uninitialized, and the next heartbeat replaces it with a warning",
    async (_, spoil) => {
      await world.call(["init", "m1"]);
      await world.call(["init", "m2"]);
      spoil();
      expect(summary()).toMatchObject({ total_cells: 2, uninitialized: 1, healthy: 1 });
      const { exit, stderr } = world.run(["heartbeat", "m1"]);
      expect(exit).toBe(0);
      expect(stderr).toMatch(/^warning: the heartbeat .* was unreadable \(.*\) and has been replaced\n$/);
      expect(lstatSync(heartbeat()).isFile()).toBe(true);
      expect(summary()).toMatchObject({ healthy: 2 });
      if (existsSync(world.path("precious"))) expect(world.read("precious")).toBe('{"timestamp": 9e9}');
    },
  );

  it("(a directory) is uninitialized, and a heartbeat is refused with exit 8", async () => {
    await world.call(["init", "m1"]);
    rmSync(heartbeat());
    mkdirSync(heartbeat());
    writeFileSync(join(heartbeat(), "inside"), "kept");
    expect(summary()).toMatchObject({ uninitialized: 1 });
    expect(world.run(["heartbeat", "m1"])).toMatchObject({ exit: 8 });
    expect(readFileSync(join(heartbeat(), "inside"), "utf8")).toBe("kept");
  });

  it("(state is a symlink out of the cell): a heartbeat is refused with exit 8", async () => {
    await world.call(["init", "m1"]);
    renameSync(join(world.missions, "m1/state"), world.path("outside"));
    symlinkSync(world.path("outside"), join(world.missions, "m1/state"));
    const before = world.read("outside/heartbeat.json");
    expect(world.run(["heartbeat", "m1"])).toMatchObject({ exit: 8 });
    expect(world.read("outside/heartbeat.json")).toBe(before);
    expect(summary()).toMatchObject({ uninitialized: 1 });
  });
});

it("scan works while cells are created and removed", async () => {
  await world.call(["init", "steady"]);
  const enough = world.path("enough");
  const churn = spawn(
    "/bin/sh",
    [
      "-c",
      `until [ -e "${enough}" ]; do for i in 1 2 3 4 5; do cp -r steady c$i; done; rm -rf c1 c2 c3 c4 c5; done`,
    ],
    { cwd: world.missions, stdio: "ignore" },
  );
  const ended = once(churn, "exit");
  try {
    for (let n = 0; n < 15; n += 1) {
      const { exit, stdout } = await world.call(["scan", "--json"]);
      expect(exit).toBe(0);
      expect(JSON.parse(stdout).cells.at(-1)).toMatchObject({ mission_id: "steady", status: "healthy" });
    }
  } finally {
    // Not killed: its cp would continue to write while the world is removed.
    writeFileSync(enough, "");
    await ended;
  }
});

describe("clock skew", () => {
  it("a heartbeat in the future is healthy and reported with its skew", async () => {
    await world.call(["init", "m1"]);
    writeFileSync(heartbeat(), JSON.stringify({ timestamp: Date.now() / 1000 + 86_400 * 2 + 60 }));
    expect((await world.call(["scan"])).stdout).toMatch(
      /^m1 +healthy +0s {2}heartbeat is 2d in the future$/m,
    );
    expect((await world.call(["scan", "--check"])).exit).toBe(0);
  });

  it.each(["1e308", "-1e308", "0", "-5", "9007199254740993"])(
    "a timestamp of %s breaks nothing",
    async (timestamp) => {
      await world.call(["init", "m1"]);
      writeFileSync(heartbeat(), `{"timestamp": ${timestamp}}`);
      const { exit, stdout } = await world.call(["scan"]);
      expect(exit).toBe(0);
      for (const line of stdout.split("\n").slice(0, 2)) expect(line.length).toBeLessThanOrEqual(80);
      expect((await world.call(["heartbeat", "m1"])).exit).toBe(0);
    },
  );
});

describe("a disk", () => {
  const mountable = isRoot && spawnSync("mount", ["--version"]).status === 0;
  let disk: string;
  let mounted = false;
  const mount = (...options: string[]) => {
    disk = world.path("disk");
    mkdirSync(disk, { recursive: true });
    mounted = spawnSync("mount", [...options, disk]).status === 0;
    return mounted;
  };
  const onDisk = (words: string[]) => world.run(words, { env: { LAZARUS_HOME: disk } });
  afterEach(() => {
    if (mounted) spawnSync("umount", [disk]);
    mounted = false;
  });

  it("that is full exits 9 with a message, and existing files stay intact", (context) => {
    if (!mountable || !mount("-t", "tmpfs", "-o", "size=512k", "tmpfs"))
      context.skip("needs root that may mount a tmpfs");
    expect(onDisk(["init", "m1"]).exit).toBe(0);
    const file = join(disk, "missions/m1/state/heartbeat.json");
    spawnSync("/bin/sh", ["-c", `cat /dev/zero > "${disk}/filler"`]);
    const before = readFileSync(file, "utf8");
    const { exit, stderr } = onDisk(["heartbeat", "m1"]);
    expect(exit).toBe(9);
    expect(stderr).toContain("the disk is full");
    expect(stderr).toContain("try: free some space (lazarus prune removes old checkpoints, df -h ");
    expect(readFileSync(file, "utf8")).toBe(before);
    expect(onDisk(["init", "m2"])).toMatchObject({ exit: 9 });
    expect(onDisk(["job", "beat", "j1"])).toMatchObject({ exit: 0 });
    expect(onDisk(["scan"]).exit).toBe(0);
    rmSync(join(disk, "filler"));
    expect(onDisk(["heartbeat", "m1"]).exit).toBe(0);
    expect(onDisk(["init", "m2"]).exit).toBe(0);
    expect(readdirSync(join(disk, "missions/m1/state"))).toEqual(["heartbeat.json"]);
  });

  it("that is read-only fails writes with exit 9 and can still be scanned", (context) => {
    if (!mountable || !mount("-t", "tmpfs", "-o", "size=4m", "tmpfs"))
      context.skip("needs root that may mount a tmpfs");
    onDisk(["init", "m1"]);
    spawnSync("mount", ["-o", "remount,ro", disk]);
    for (const words of [
      ["heartbeat", "m1"],
      ["init", "m2"],
    ]) {
      const { exit, stderr } = onDisk(words);
      expect(exit).toBe(9);
      expect(stderr).toContain("the file system is read-only");
    }
    expect(onDisk(["job", "beat", "j1"])).toMatchObject({
      exit: 0,
      stderr: expect.stringContaining("read-only"),
    });
    expect(onDisk(["scan", "--check"]).exit).toBe(0);
    expect(onDisk(["doctor"]).exit).toBe(3);
  });
});

it("twenty concurrent inits all succeed, each file has one author, and scan reports a healthy cell", async () => {
  const children = Array.from({ length: 20 }, () => {
    const child = spawn(process.execPath, [LAUNCHER, "init", "m1", "--json"], {
      cwd: world.cwd,
      env: world.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let stdout = "";
    let stderr = "";
    child.stdout.on("data", (data) => {
      stdout += data;
    });
    child.stderr.on("data", (data) => {
      stderr += data;
    });
    return once(child, "close").then(([exit]) => ({ exit, stdout, stderr }));
  });
  const made: string[] = [];
  for (const { exit, stdout, stderr } of await Promise.all(children)) {
    expect({ exit, stderr }).toEqual({ exit: 0, stderr: "" });
    made.push(...JSON.parse(stdout).made);
  }
  expect(made.sort()).toEqual([...new Set(made)]);
  expect(made).toHaveLength(10);
  expect(summary()).toMatchObject({ total_cells: 1, healthy: 1 });
  expect(readdirSync(join(world.missions, "m1/state"))).toEqual(["heartbeat.json"]);
});
