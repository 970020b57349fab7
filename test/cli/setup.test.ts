// The commands about the set-up and the log, output and exit code whole.

import { existsSync, readdirSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isRoot } from "../plain-user.ts";
import { createWorld, type World } from "./hermetic.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

describe("config", () => {
  it("shows defaults and what LAZARUS_HOME moved", () => {
    // Columns depend on how long the path of this world is.
    expect(world.show("config").replaceAll(/ {2,}/g, "  ")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      KEY  VALUE  FROM
      missions_root  <world>/home/missions  LAZARUS_HOME
      vault_root  <world>/home/vault  LAZARUS_HOME
      heartbeat_dir  <world>/home/heartbeats  LAZARUS_HOME
      registry_file  <world>/home/registry.db  LAZARUS_HOME
      run_dir  <world>/home/run  LAZARUS_HOME
      heartbeat_job  lazarus_pit  default
      heartbeat_interval_seconds  60  default
      stale_after_seconds  180  default
      required_subdirs  meta config state logs artifacts worktree  default
      heartbeat_file  state/heartbeat.json  default
      ── stderr
      no config file was found; these are defaults
      "
    `);
  });

  it("shows what a file decided, and warns of what it cannot", () => {
    world.write("cwd/lazarus.json", '{"stale_after_seconds": 9, "missions_root": "/x", "stale_afer": 1}');
    expect(world.show("config --json")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      {"schema":"lazarus.config/1","file":"<world>/cwd/lazarus.json","values":{"missions_root":"<world>/home/missions","vault_root":"<world>/home/vault","heartbeat_dir":"<world>/home/heartbeats","registry_file":"<world>/home/registry.db","run_dir":"<world>/home/run","heartbeat_job":"lazarus_pit","heartbeat_interval_seconds":60,"stale_after_seconds":9,"required_subdirs":["meta","config","state","logs","artifacts","worktree"],"heartbeat_file":"state/heartbeat.json"},"origins":{"missions_root":"LAZARUS_HOME","heartbeat_job":"default","heartbeat_interval_seconds":"default","stale_after_seconds":"<world>/cwd/lazarus.json","required_subdirs":"default","heartbeat_file":"default","vault_root":"LAZARUS_HOME","heartbeat_dir":"LAZARUS_HOME","registry_file":"LAZARUS_HOME","run_dir":"LAZARUS_HOME"},"warnings":["<world>/cwd/lazarus.json: unknown key \\"stale_afer\\" is not used","<world>/cwd/lazarus.json: missions_root is not used, since LAZARUS_HOME moves everything to <world>/home"]}
      ── stderr
      warning: <world>/cwd/lazarus.json: unknown key "stale_afer" is not used
      warning: <world>/cwd/lazarus.json: missions_root is not used, since LAZARUS_HOME moves everything to <world>/home
      "
    `);
    expect(world.run(["config"]).stderr).toContain("warning: ");
  });

  it("without LAZARUS_HOME has the user's own places", () => {
    const env = { LAZARUS_HOME: undefined, XDG_DATA_HOME: "/data" };
    const { values } = JSON.parse(world.run(["config", "--json"], { env }).stdout);
    expect(values.missions_root).toBe(isRoot ? "/var/missions" : "/data/lazarus/missions");
  });
});

describe("doctor", () => {
  it("tries everything, says so, and leaves nothing behind", () => {
    const said = world
      .show("doctor")
      .replace(/^warning {2}.*\n\s+try:.*\n/gm, "")
      .replace(/(?<=gzip: made by ).*(\n\s+try: .* (?:libisal2|isa-l)$)?/m, "<library>");
    expect(said).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      ok       node: Node <node>
      ok       git: git version <git>
      ok       libc: flock, nanosecond times and xattrs can be called
      ok       missions root: <world>/home/missions (not made yet)
      ok       vault: <world>/home/vault (not made yet)
      ok       heartbeats: <world>/home/heartbeats (not made yet)
      ok       run directory: <world>/home/run (not made yet)
      ok       file metadata: nanosecond times and user xattrs are kept
      ok       locks: kernel locks exclude each other
      ok       registry: <world>/home/registry.db (not made yet)
      ok       gzip: made by <library>
      ok       clock: <time>
      ok       config: defaults
      "
    `);
    expect(readdirSync(world.home)).toEqual([]);
  });

  it("finds a registry that is damaged, and exits 3", () => {
    world.write("home/registry.db", "x".repeat(5000));
    const { exit, stdout } = world.run(["doctor", "--json"]);
    const { schema, healthy, findings } = JSON.parse(stdout);
    expect({ exit, schema, healthy }).toEqual({ exit: 3, schema: "lazarus.doctor/1", healthy: false });
    expect(findings.find(({ check }: { check: string }) => check === "registry")).toMatchObject({
      status: "failed",
    });
  });

  it("says which place cannot be written", () => {
    world.write("home/missions", "a file");
    expect(world.run(["doctor"]).stdout).toMatch(/failed {3}missions root: writing in .*missions/);
  });
});

describe("events", () => {
  it("before anything happened says so", () => {
    expect(world.show("events")).toMatchInlineSnapshot(`
      "exit 0
      ── stderr
      nothing has happened yet; make a cell with: lazarus init <mission>
      "
    `);
    expect(world.show("events --json")).toMatchInlineSnapshot(`
      "exit 0
      "
    `);
  });

  it("tells what happened, of all missions or of one", () => {
    world.run(["init", "m1"]);
    world.run(["init", "m2"]);
    expect(world.show("events")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      <time>  init           m1  root=<world>/home/missions/m1  made=["meta/","config/","state/","logs/","artifacts/","worktree/","logs/daemon.log","meta/mission.json","config/cell.json","state/heartbeat.json"]
      <time>  init           m2  root=<world>/home/missions/m2  made=["meta/","config/","state/","logs/","artifacts/","worktree/","logs/daemon.log","meta/mission.json","config/cell.json","state/heartbeat.json"]
      "
    `);
    expect(world.show("events m2 --json")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      {"schema":"lazarus.event/1","seq":2,"time_ms":<ms>,"mission":"m2","kind":"init","data":{"root":"<world>/home/missions/m2","made":["meta/","config/","state/","logs/","artifacts/","worktree/","logs/daemon.log","meta/mission.json","config/cell.json","state/heartbeat.json"],"repo":null}}
      "
    `);
    expect(world.run(["events", "--last", "1"]).stdout).toContain("m2");
  });

  it("--follow waits for more until it is interrupted", () => {
    const { stdout } = world.shell(
      "lazarus events --follow --json > out & pid=$!; lazarus init m1 -q > /dev/null; until [ -s out ]; do sleep 0.05; done; kill -INT $pid; wait $pid; cat out",
      "/bin/bash",
    );
    expect(JSON.parse(stdout)).toMatchObject({ schema: "lazarus.event/1", seq: 1, mission: "m1" });
  });

  it("of a registry of a newer Lazarus are refused in plain words", () => {
    world.run(["init", "m1"]);
    world.shell(
      `"${process.execPath}" -e 'new (require("node:sqlite").DatabaseSync)("../home/registry.db").exec("PRAGMA user_version = 99")'`,
    );
    expect(world.show("events").replace(/up to \d+/, "up to <n>")).toMatchInlineSnapshot(`
      "exit 11
      ── stderr
      error: the registry <world>/home/registry.db has schema 99; this version of Lazarus supports up to <n>
        try: upgrade Lazarus on this machine: npm install -g lazarus@latest
      "
    `);
    expect(
      world.show("init m2").replace(/up to \d+/, "up to <n>"),
      "a registry costs a warning, never the command",
    ).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      <world>/home/missions/m2
      ── stderr
      warning: the event log was not written: the registry <world>/home/registry.db has schema 99; this version of Lazarus supports up to <n>
      made the cell of m2: meta/ config/ state/ logs/ artifacts/ worktree/ logs/daemon.log meta/mission.json config/cell.json state/heartbeat.json
      next: lazarus heartbeat m2
      "
    `);
  });
});

describe("demo", () => {
  it("--json keeps stdout to one document, --keep keeps the home", () => {
    const { exit, stdout } = world.run(["demo", "--json", "--keep"]);
    const { schema, home } = JSON.parse(stdout);
    expect({ exit, schema }).toEqual({ exit: 0, schema: "lazarus.demo/1" });
    expect(existsSync(home)).toBe(true);
    world.shell(`rm -r "${home}"`);
  });

  it("that cannot make its home says where it tried", () => {
    expect(world.show("demo", { env: { TMPDIR: "/nowhere" } })).toMatchInlineSnapshot(`
      "exit 6
      ── stderr
      error: making a temporary home in /nowhere: no such file or directory
        caused by: ENOENT: no such file or directory, mkdtemp '<demo>'
        try: ls -la /nowhere
      "
    `);
  });
});

describe("version and help", () => {
  it("have short ways", () => {
    const version = world.run(["--version"]).stdout;
    expect(version).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(world.run(["-V"]).stdout).toBe(version);
    expect(world.json("version --json")).toEqual({ schema: "lazarus.version/1", version: version.trim() });
    expect(world.run([]).stdout).toBe(world.run(["--help"]).stdout);
    expect(world.run(["help", "scan"]).stdout).toBe(world.run(["scan", "-h"]).stdout);
    expect(world.show("job --help")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      lazarus job beat: say that a job ran
      lazarus job check: list jobs whose pulse is stale
      "
    `);
  });

  it("of a command shows arguments, options, examples and exit codes", () => {
    expect(world.show("heartbeat --help")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      lazarus heartbeat: say that a mission is alive

      Usage: lazarus heartbeat <mission> [options]

      Writes the mission's heartbeat: the proof of life that the scan and the pit look
      at. An agent calls it between its steps. Fields that other tools keep in the
      file stay. A beat after a silence longer than stale_after_seconds is entered in
      the event log as a gap. An agent whose successor has been started is refused.

      Arguments:
        mission                 id of the mission

      Options:
        --status TEXT           what it is doing; stays until changed
        --json                  print one JSON document on stdout
        --config FILE           use this config file
        -q, --quiet             say nothing on stderr but errors
        -h, --help              show this help

      Examples:
        # still alive
        lazarus heartbeat tidy-inbox
        # alive, and sorting
        lazarus heartbeat tidy-inbox --status sorting

      Exit codes:
        0                       done
        1                       failed for a reason Lazarus did not expect
        2                       wrong command line or request
        6                       no such mission, checkpoint, flow, run or file
        7                       refused: it would undo or repeat something
        8                       stored data is damaged
        9                       disk full, read-only, no permission, I/O error
        78                      broken configuration
      "
    `);
  });

  it("need no readable config", () => {
    world.write("cwd/lazarus.json", "{");
    expect(world.run(["scan", "--help"]).exit).toBe(0);
  });
});

describe("a typo", () => {
  it.each([
    ["scna", 'there is no command "scna"; did you mean scan?', "lazarus --help"],
    ["frobnicate", 'there is no command "frobnicate"', "lazarus --help"],
    ["scan --wathc", 'lazarus scan has no option "--wathc"; did you mean --watch?', "lazarus scan --help"],
    ["scan extra", 'lazarus scan does not know what to do with "extra"', "lazarus scan --help"],
    ["heartbeat", "lazarus heartbeat needs a mission", "lazarus heartbeat --help"],
    ["heartbeat m1 --status", "--status needs a value: --status TEXT", "lazarus heartbeat --help"],
    ["job", "lazarus job needs one of: beat, check", "lazarus job --help"],
    ["job baet x", 'lazarus job has no "baet"; it has: beat, check', "lazarus job --help"],
    ["--quiet scan", '"--quiet" stands before the command; options come after it', "lazarus --help"],
    ["help nothing", 'there is no command "nothing"', "lazarus --help"],
    ["events --last 1.5", "--last takes a whole number", "lazarus events --last 20"],
    [
      "completion tcsh",
      'no completions for "tcsh"; there are bash, zsh and fish',
      "lazarus completion --help",
    ],
  ])("%s", (line, error, hint) => {
    expect(world.show(line)).toBe(`exit 2\n── stderr\nerror: ${error}\n  try: ${hint}\n`);
  });

  it("with --json is one document on stdout and nothing on stderr", () => {
    expect(world.show("scan --wathc --json")).toMatchInlineSnapshot(`
      "exit 2
      ── stdout
      {"schema":"lazarus.error/1","code":"USAGE","message":"lazarus scan has no option \\"--wathc\\"; did you mean --watch?","hint":"lazarus scan --help","details":{}}
      "
    `);
  });
});
