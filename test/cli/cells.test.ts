// The commands about cells and jobs: their whole output and exit codes.
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWorld, type World } from "./hermetic.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

/** Writes a heartbeat of `secondsAgo`, as another tool would. */
function beatAgo(mission: string, secondsAgo: number): void {
  const timestamp = Date.now() / 1000 - secondsAgo;
  world.write(`home/missions/${mission}/state/heartbeat.json`, JSON.stringify({ timestamp }));
}

/** Ages as they would be if no time passed between two commands: a busy machine may take seconds for each. */
function steady(text: string): string {
  return text
    .replaceAll(/(?<!\dm) \d+s\b/g, (age) => "0s".padStart(age.length))
    .replaceAll(/(?<=\b2m )\d+(?=s\b)/g, "10")
    .replaceAll(/(?<= for )\d+(?= s\b)/g, "<n>")
    .replaceAll(/"age_seconds":\d+/g, '"age_seconds":0');
}

describe("init", () => {
  it("creates a cell; a second run finds it complete", () => {
    expect(world.show("init tidy-inbox")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      <world>/home/missions/tidy-inbox
      ── stderr
      created the cell of tidy-inbox: meta/ config/ state/ logs/ artifacts/ worktree/ logs/daemon.log meta/mission.json config/cell.json state/heartbeat.json
      next: lazarus run tidy-inbox -- COMMAND
      "
    `);
    expect(world.show("init tidy-inbox")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      <world>/home/missions/tidy-inbox
      ── stderr
      the cell of tidy-inbox already exists
      "
    `);
  });

  it("--json prints one document", () => {
    expect(world.show("init tidy-inbox --json")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      {"schema":"lazarus.init/1","mission_id":"tidy-inbox","root":"<world>/home/missions/tidy-inbox","made":["meta/","config/","state/","logs/","artifacts/","worktree/","logs/daemon.log","meta/mission.json","config/cell.json","state/heartbeat.json"]}
      "
    `);
  });

  it("--quiet prints only the path of the cell", () => {
    expect(world.show("init tidy-inbox -q")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      <world>/home/missions/tidy-inbox
      "
    `);
  });

  it("--repo clones into the worktree, and refuses to do so twice", () => {
    const repo = world.path("repo");
    execFileSync("git", ["init", "--quiet", repo]);
    execFileSync("git", [
      "-C",
      repo,
      "-c",
      "user.name=t",
      "-c",
      "user.email=t@e",
      "commit",
      "--allow-empty",
      "-qm1",
    ]);
    writeFileSync(join(repo, "file"), "");
    expect(world.show(`init fix-login --repo ${repo} --quiet`)).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      <world>/home/missions/fix-login
      "
    `);
    expect(world.show(`init fix-login --repo ${repo} --quiet`)).toMatchInlineSnapshot(`
      "exit 7
      ── stderr
      error: the worktree <world>/home/missions/fix-login/worktree is not empty; nothing was cloned
        try: git -C <world>/home/missions/fix-login/worktree status, or choose another mission
      "
    `);
    expect(world.json("events --json").data).toMatchObject({ repo });
  });

  it("--repo that cannot be cloned leaves a cell with an empty worktree and reports why", () => {
    expect(world.show("init fix-login --repo ./nowhere --quiet")).toMatchInlineSnapshot(`
      "exit 9
      ── stderr
      error: git could not copy ./nowhere into the worktree: fatal: repository './nowhere' does not exist
        try: git ls-remote ./nowhere
      "
    `);
    expect(world.json("scan --json").summary).toMatchObject({ healthy: 1 });
    expect(world.json("events --json")).toMatchObject({ kind: "init", data: { repo: null } });
  });
});

describe("heartbeat", () => {
  it("prints nothing on success", () => {
    world.run(["init", "m1"]);
    expect(world.show("heartbeat m1 --status sorting")).toMatchInlineSnapshot(`
      "exit 0
      "
    `);
    expect(JSON.parse(world.read("home/missions/m1/state/heartbeat.json"))).toMatchObject({
      status: "sorting",
    });
  });

  it("--json prints the heartbeat with its path", () => {
    world.run(["init", "m1"]);
    expect(world.show("heartbeat m1 --json")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      {"schema":"lazarus.heartbeat/1","mission_id":"m1","timestamp":<seconds>,"status":"alive","path":"<world>/home/missions/m1/state/heartbeat.json"}
      "
    `);
  });

  it("of a mission without a cell suggests init", () => {
    expect(world.show("heartbeat m1")).toMatchInlineSnapshot(`
      "exit 6
      ── stderr
      error: mission m1 has no cell at <world>/home/missions/m1
        try: lazarus init m1
      "
    `);
    expect(world.show("heartbeat m1 --json")).toMatchInlineSnapshot(`
      "exit 6
      ── stdout
      {"schema":"lazarus.error/1","code":"MISSION_UNKNOWN","message":"mission m1 has no cell at <world>/home/missions/m1","hint":"lazarus init m1","details":{}}
      "
    `);
  });

  it("after a long silence records a gap event", () => {
    world.run(["init", "m1"]);
    beatAgo("m1", 500.5);
    expect(world.show("heartbeat m1")).toMatchInlineSnapshot(`
      "exit 0
      "
    `);
    const { kind, data } = world.json("events --json --after 1") as {
      kind: string;
      data: { gap_seconds: number };
    };
    expect(kind).toBe("heartbeat-gap");
    expect(data.gap_seconds).toBeGreaterThanOrEqual(500);
  });
});

describe("scan", () => {
  it("without cells suggests init", () => {
    expect(world.show("scan")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      0 cells in <world>/home/missions: 0 healthy, 0 stale, 0 inactive, 0 incomplete, 0 uninitialized
      no cells yet; create one with: lazarus init <mission>
      "
    `);
    expect(world.show("scan --json")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      {"schema":"lazarus.scan/1","missions_root":"<world>/home/missions","heartbeat_job":"lazarus_pit","heartbeat_interval_seconds":60,"summary":{"total_cells":0,"healthy":0,"stale":0,"inactive":0,"incomplete":0,"uninitialized":0},"cells":[],"skipped":[]}
      "
    `);
  });

  it("prints one line per cell and a summary", () => {
    for (const mission of ["fresh", "old", "partial", "unborn", "ahead"]) world.run(["init", mission]);
    beatAgo("fresh", 5);
    // Far enough from a full minute that a slow test prints the same age.
    beatAgo("old", 3961);
    beatAgo("ahead", -7319);
    execFileSync("rm", [
      "-r",
      join(world.missions, "partial/logs"),
      join(world.missions, "unborn/state/heartbeat.json"),
    ]);
    symlinkSync("/", join(world.missions, "link"));
    mkdirSync(join(world.missions, `${"x".repeat(90)}\x1b[31m`));
    expect(steady(world.show("scan"))).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      MISSION                       STATUS           AGE  NOTE
      ahead                         healthy           0s  heartbeat is 2h 1m in the f…
      fresh                         healthy           0s
      old                           stale          1h 6m  no heartbeat for <n> s (li…
      partial                       incomplete        0s  missing logs
      unborn                        uninitialized      -  heartbeat: no such file
      xxxxxxxxxxxxxxxxxxxxxxxxxxx…  incomplete         -  missing meta, config, state…
      skipped link: a link that leads outside, to /
      6 cells in <world>/home/missions: 2 healthy, 1 stale, 0 inactive, 2 incomplete, 1 uninitialized
      "
    `);
    expect(world.run(["scan", "--check"]).exit).toBe(3);
    for (const line of world.run(["scan"]).stdout.split("\n").slice(0, 7))
      expect(line.length).toBeLessThanOrEqual(80);
  });

  it("--json prints the report", () => {
    world.run(["init", "m1"]);
    expect(steady(world.show("scan --json"))).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      {"schema":"lazarus.scan/1","missions_root":"<world>/home/missions","heartbeat_job":"lazarus_pit","heartbeat_interval_seconds":60,"summary":{"total_cells":1,"healthy":1,"stale":0,"inactive":0,"incomplete":0,"uninitialized":0},"cells":[{"mission_id":"m1","root":"<world>/home/missions/m1","status":"healthy","age_seconds":0,"last_timestamp":<seconds>,"missing_paths":[],"skew_seconds":null,"reason":null}],"skipped":[]}
      "
    `);
  });

  it("--check exits 0 if every cell is healthy", () => {
    world.run(["init", "m1"]);
    expect(world.run(["scan", "--check"]).exit).toBe(0);
  });

  it("--watch scans until interrupted", () => {
    world.run(["init", "m1"]);
    const { stdout, exit } = world.shell(
      "lazarus scan --watch --interval 0.05 --json > out & pid=$!; until [ $(wc -l < out) -ge 2 ]; do sleep 0.05; done; kill -INT $pid; wait $pid; code=$?; cat out; exit $code",
      "/bin/bash",
    );
    const documents = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(documents.length).toBeGreaterThan(1);
    expect(documents.at(-1)).toMatchObject({ schema: "lazarus.scan/1", summary: { healthy: 1 } });
    expect(exit).toBe(0);
  });
});

describe("job", () => {
  it("beat records the caller, and check finds it fresh", () => {
    expect(world.show("job beat nightly-backup --interval 3600 --status done")).toMatchInlineSnapshot(`
      "exit 0
      "
    `);
    expect(JSON.parse(world.read("home/heartbeats/nightly-backup.last"))).toMatchObject({
      job: "nightly-backup",
      interval_seconds: 3600,
      pid: process.pid,
      status: "done",
    });
    expect(world.show("job check")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      1 job checked, 0 stale
      "
    `);
    expect(steady(world.show("job check --all"))).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      JOB             STATUS  AGE  NOTE
      nightly-backup  fresh    0s  done
      1 job checked, 0 stale
      "
    `);
    expect(world.show("job beat nightly-backup --json")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      {"schema":"lazarus.job-beat/1","job":"nightly-backup","path":"<world>/home/heartbeats/nightly-backup.last","written":true}
      "
    `);
  });

  it("check lists stale and unreadable jobs and exits 3", () => {
    world.write(
      "home/heartbeats/old.last",
      JSON.stringify({ timestamp: Date.now() / 1000 - 130, interval_seconds: 60 }),
    );
    world.write("home/heartbeats/broken.last", "{");
    expect(steady(world.show("job check never-ran old broken"))).toMatchInlineSnapshot(`
      "exit 3
      ── stdout
      JOB        STATUS         AGE  NOTE
      never-ran  unreadable       -  no such file
      old        stale       2m 10s  no heartbeat for <n> s, more than twice its inte…
      broken     unreadable       -  not JSON
      3 jobs checked, 3 stale
      "
    `);
    expect(world.json("job check --json")).toMatchObject({
      schema: "lazarus.job-check/1",
      status: "alert",
      stale: 2,
    });
  });

  it("beat never fails its caller: problems are warnings and the exit code is 0", () => {
    world.write("home/heartbeats", "a file");
    expect(world.show("job beat j1")).toMatchInlineSnapshot(`
      "exit 0
      ── stderr
      warning: writing the job heartbeat <world>/home/heartbeats/j1.last: a part of the path is not a directory; try: ls -ld <world>/home/heartbeats
      "
    `);
    world.write("cwd/lazarus.json", '{"stale_after_seconds": "soon"}');
    expect(world.show("job beat j1")).toMatchInlineSnapshot(`
      "exit 0
      ── stderr
      warning: <world>/cwd/lazarus.json: stale_after_seconds is string "soon"; expected a number of seconds above 0; try: edit stale_after_seconds in <world>/cwd/lazarus.json, then: lazarus config
      "
    `);
    expect(world.show("job beat j1 --json")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      {"schema":"lazarus.job-beat/1","job":"j1","path":null,"written":false}
      ── stderr
      warning: <world>/cwd/lazarus.json: stale_after_seconds is string "soon"; expected a number of seconds above 0; try: edit stale_after_seconds in <world>/cwd/lazarus.json, then: lazarus config
      "
    `);
  });

  it("refuses invalid names", () => {
    expect(world.show("job beat ../x")).toMatchInlineSnapshot(`
      "exit 2
      ── stderr
      error: "../x" is not a job name
        try: use letters, digits, '.', '_' or '-', starting with a letter or digit
      "
    `);
  });
});
