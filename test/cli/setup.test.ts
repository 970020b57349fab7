// The setup commands and `events`: their whole output and exit codes.

import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { isRoot } from "../plain-user.ts";
import { createWorld, type World } from "./hermetic.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

describe("config", () => {
  it("prints the defaults and what LAZARUS_HOME moved", () => {
    // The columns depend on the length of the path of this world.
    expect(world.show("config").replaceAll(/ {2,}/g, "  ")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      missions_root = <world>/home/missions  (from LAZARUS_HOME; default: <data>/missions)
        directory of all cells; /var/missions for root
      vault_root = <world>/home/vault  (from LAZARUS_HOME; default: <data>/vault)
        directory of all vaults, where checkpoints are stored
      registry_file = <world>/home/registry.db  (from LAZARUS_HOME; default: <data>/registry.db)
        index of all checkpoints and events
      run_dir = <world>/home/run  (from LAZARUS_HOME; default: <data>/run)
        sockets, locks and records of running agents
      heartbeat_dir = <world>/home/heartbeats  (from LAZARUS_HOME; default: <data>/heartbeats)
        heartbeat files of jobs
      heartbeat_file = state/heartbeat.json  (default)
        heartbeat of a mission, relative to its cell
      heartbeat_job = lazarus_pit  (default)
        job name of the pit's own heartbeat
      heartbeat_interval_seconds = 60  (default)
        interval of the pit's own heartbeat
      stale_after_seconds = 180  (default)
        a mission without a heartbeat for this long is stale
      required_subdirs = ["meta","config","state","logs","artifacts","worktree"]  (default)
        directories that every cell must have; an empty list means the default
      snapshot.compression = gzip  (default)
        compression of new layers
      snapshot.exclude = []  (default)
        paths to leave out of checkpoints; a restore never removes them
      secrets.patterns = [".env",".env.*","*.pem","*.key","*.p12","*.pfx","*.keystore","*.jks","id_rsa","id_dsa","id_ecdsa","id_ed25519",".netrc",".npmrc",".pypirc",".pgpass",".git-credentials","credentials.json","service-account*.json","**/.aws/credentials","**/.ssh/**","**/.gnupg/**","**/.docker/config.json","**/.kube/config",".credentials.json","oauth_creds.json","**/.codex/auth.json","**/opencode/auth.json","**/.pi/agent/auth.json"]  (default)
        paths stored in local-only layers that are never pushed
      retention.keep_last = 20  (default)
        keep this many of the newest checkpoints
      retention.keep_hourly = 24  (default)
        keep the newest checkpoint of each of this many hours
      retention.keep_daily = 14  (default)
        keep the newest checkpoint of each of this many days
      retention.keep_weekly = 8  (default)
        keep the newest checkpoint of each of this many weeks
      retention.keep_within_seconds = 3600  (default)
        keep every checkpoint younger than this
      retention.max_bytes = 0  (default)
        remove the oldest checkpoints above this vault size; 0: no limit
      retention.auto = true  (default)
        prune after each checkpoint
      pit.revive = ask  (default)
        what to do when an agent dies: revive it, do nothing, ask a person, or start a fresh substitute
      pit.backoff_seconds = [0,10,20,40,80,160,300]  (default)
        delay before the first, second, … revival in a row, ±20 %; the last value repeats
      pit.overload_backoff_seconds = [10,20,40,80,160,300]  (default)
        the same when the provider is overloaded or unreachable, or the quota is used up
      pit.healthy_seconds = 600  (default)
        a life of this length resets the backoff and the count of identical crashes
      pit.max_revivals_per_hour = 5  (default)
        more than this ends in a tombstone
      pit.max_age_seconds = 86400  (default)
        ask instead of reviving when the death was longer ago than this
      pit.alike_crashes_per_step = 3  (default)
        identical crashes in a row before the pit goes back to an older checkpoint
      pit.step_back_after_seconds = 60  (default)
        how long identical crashes must have repeated by then, so that a short outage does not roll files back
      pit.permanent_exit_codes = [78]  (default)
        exit codes after which an agent is never revived
      pit.protect_within_seconds = 30  (default)
        save changes at most this long after they are made, while an agent works; null: no live points
      pit.quiet_seconds = 2  (default)
        take a live point after this long without another change
      pit.protect_share = 0.05  (default)
        share of the time that live points of one mission may take
      pit.audit_minutes = 60  (default)
        walk the whole cell this often, to find what its watch missed
      pit.checkpoint_every_seconds = not set  (default)
        take a checkpoint at this interval; null: only on events
      pit.checkpoint_at_shutdown = true  (default)
        take a checkpoint of each running agent when the pit shuts down
      pit.grace_seconds = 10  (default)
        time between SIGTERM and SIGKILL for an agent
      pit.leftover_grace_seconds = 2  (default)
        the same for processes that an agent left behind
      pit.stall_seconds = not set  (default)
        no output, write, CPU use or heartbeat for this long is a stall; null: never
      pit.progress_seconds = not set  (default)
        no progress of flows or runs for this long is a stall; null: never
      pit.log_limit_bytes = 8388608  (default)
        rotate an agent's log at this size
      pit.log_count = 2  (default)
        rotated logs to keep
      pit.quota_patterns = []  (default)
        lines at the end of the output of a failed agent that report a used-up quota; the first group is the reset time
      pit.overload_patterns = []  (default)
        lines at the end of the output of a failed agent that report an overloaded or unreachable provider
      pit.auth_patterns = []  (default)
        lines at the end of the output of a failed agent that report a login or key that was refused
      pit.permanent_patterns = []  (default)
        lines at the end of the output of a failed agent that report an error that a retry cannot fix
      pit.effects = ["\\\\bgit\\\\b.*\\\\bpush\\\\b","\\\\b(npm|pnpm|yarn|bun|cargo|poetry|uv)\\\\s+publish\\\\b","\\\\b(twine\\\\s+upload|gem\\\\s+push|(docker|podman)\\\\s+push)\\\\b","\\\\bcurl\\\\b.*\\\\s(-X|--request)[\\\\s=]*['\\"]?(POST|PUT|PATCH|DELETE)\\\\b","\\\\bcurl\\\\b.*\\\\s(-d|-F|-T|--data[\\\\w-]*|--form|--json|--upload-file)\\\\b","\\\\b(gh|glab)\\\\s+(pr|mr|issue|release|repo|workflow)\\\\s+(create|merge|close|comment|delete|edit|review|run)\\\\b","\\\\b(mail|mailx|mutt|sendmail|msmtp|swaks)\\\\s","\\\\b(kubectl|terraform|tofu|pulumi|helm)\\\\s.*\\\\b(apply|delete|destroy|up|install|upgrade)\\\\b","(send|post|create|reply)_?(e?mail|message|tweet|payment|invoice)"]  (default)
        shell commands and names of tools that must not be repeated blindly: when one was cut off, the user is asked whether it happened
      pit.http_port = 7433  (default)
        port of the HTTP API on 127.0.0.1; null leaves only the unix socket
      pit.gitea.secret_file = not set  (default)
        file with the webhook's shared secret, mode 0600; required when the section is present
      pit.gitea.label = mission-approved  (default)
        issue label that approves a mission proposal
      pit.gitea.repositories = not set  (default)
        accept proposals from these repositories only (owner/name); unset: from every repository with the secret
      pit.gitea.approvers = not set  (default)
        users whose label counts as approval, except for their own proposals; unset: every proposal is ignored
      alerts.command = not set  (default)
        command line for /bin/sh; receives the alert as JSON on standard input
      alerts.webhook = not set  (default)
        URL that receives each alert as a JSON POST
      alerts.webhook_file = not set  (default)
        file that holds the webhook URL, if the URL itself is a secret
      alerts.ntfy = not set  (default)
        ntfy topic, for example https://ntfy.sh/my-topic
      alerts.ntfy_token_file = not set  (default)
        file that holds the access token for ntfy
      alerts.on = ["alert"]  (default)
        event kinds that are sent; \`lazarus events\` shows them
      alerts.max_age_seconds = 3600  (default)
        do not send events that were already older than this when first seen
      flow.alert_command = not set  (default)
        command line for /bin/sh that \`lazarus flow selfcheck\` runs for new findings, with JSON on standard input
      flow.alert_webhook = not set  (default)
        URL that receives the findings of \`lazarus flow selfcheck\` as a JSON POST
      ── stderr
      no config file found; these are the defaults
      "
    `);
  });

  it("prints values from a file, and warns about unused keys", () => {
    world.write("cwd/lazarus.json", '{"stale_after_seconds": 9, "missions_root": "/x", "stale_afer": 1}');
    expect(world.show("config --json").replace(/,"settings":\[.*\]/, "")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      {"schema":"lazarus.config/1","file":"<world>/cwd/lazarus.json","ignored":null,"values":{"missions_root":"<world>/home/missions","vault_root":"<world>/home/vault","heartbeat_dir":"<world>/home/heartbeats","registry_file":"<world>/home/registry.db","run_dir":"<world>/home/run","heartbeat_job":"lazarus_pit","heartbeat_interval_seconds":60,"stale_after_seconds":9,"required_subdirs":["meta","config","state","logs","artifacts","worktree"],"heartbeat_file":"state/heartbeat.json"},"origins":{"missions_root":"LAZARUS_HOME","heartbeat_job":"default","heartbeat_interval_seconds":"default","stale_after_seconds":"<world>/cwd/lazarus.json","required_subdirs":"default","heartbeat_file":"default","vault_root":"LAZARUS_HOME","heartbeat_dir":"LAZARUS_HOME","registry_file":"LAZARUS_HOME","run_dir":"LAZARUS_HOME"},"warnings":["<world>/cwd/lazarus.json: unknown key \\"stale_afer\\" is not used","<world>/cwd/lazarus.json: missions_root is ignored because LAZARUS_HOME is set to <world>/home"]}
      ── stderr
      warning: <world>/cwd/lazarus.json: unknown key "stale_afer" is not used
      warning: <world>/cwd/lazarus.json: missions_root is ignored because LAZARUS_HOME is set to <world>/home
      "
    `);
    expect(world.run(["config"]).stderr).toContain("warning: ");
  });

  it("that an agent wrote into its worktree does not redirect a human, until a human trusts it", () => {
    world.run(["init", "m1"]);
    const cwd = join(world.missions, "m1", "worktree");
    writeFileSync(
      join(cwd, "lazarus.json"),
      '{"stale_after_seconds": 9, "alerts": {"command": "touch /tmp/x"}}',
    );
    const run = (words: string, env: Record<string, string> = {}) =>
      world.run(words.split(" "), { cwd, env });
    const value = () => JSON.parse(run("config --json").stdout);
    expect(value()).toMatchObject({ file: null, values: { stale_after_seconds: 180 } });
    expect(value().ignored).toContain("it is in a cell below");
    const status = run("status");
    expect(status.exit).toBe(0);
    expect(status.stderr).toContain("lazarus.json is not used: it is in a cell below");
    expect(status.stderr).toContain("lazarus config trust");
    // Not by the agent itself.
    expect(run("config trust", { LAZARUS_EPOCH: "1" })).toMatchObject({ exit: 2 });
    const trusted = run("config trust");
    expect(trusted.stderr).toContain("which sets: stale_after_seconds, alerts\n");
    expect(value()).toMatchObject({ ignored: null, values: { stale_after_seconds: 9 } });
    expect(run("config trust --remove").stderr).toContain("no longer trusted");
    expect(value().file).toBe(null);
    expect(run("config trust nowhere.json").exit).toBe(6);
  });

  it("without LAZARUS_HOME uses the user's directories", () => {
    const env = { LAZARUS_HOME: undefined, XDG_DATA_HOME: "/data" };
    const { values } = JSON.parse(world.run(["config", "--json"], { env }).stdout);
    expect(values.missions_root).toBe(isRoot ? "/var/missions" : "/data/lazarus/missions");
  });
});

describe("doctor", () => {
  it("runs every check and leaves nothing behind", () => {
    const output = world
      .show("doctor")
      .replace(/^warning {2}.*\n\s+try:.*\n/gm, "")
      .replace(/(?<=gzip: compressed by ).*(\n\s+try: .* libdeflate0?$)?/m, "<library>");
    expect(output).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      ok       node: Node <node>
      ok       git: git version <git>
      ok       libc: flock, nanosecond times and xattrs are available
      ok       missions root: <world>/home/missions (does not exist yet)
      ok       vault: <world>/home/vault (does not exist yet)
      ok       heartbeats: <world>/home/heartbeats (does not exist yet)
      ok       run directory: <world>/home/run (does not exist yet)
      ok       file metadata: nanosecond times and user xattrs work
      ok       locks: kernel locks work
      ok       registry: <world>/home/registry.db (does not exist yet)
      ok       gzip: compressed by <library>
      ok       clock: <time>
      ok       config: defaults
      "
    `);
    expect(readdirSync(world.home)).toEqual([]);
  });

  it("reports a damaged registry and exits 3", () => {
    world.write("home/registry.db", "x".repeat(5000));
    const { exit, stdout } = world.run(["doctor", "--json"]);
    const { schema, healthy, findings } = JSON.parse(stdout);
    expect({ exit, schema, healthy }).toEqual({ exit: 3, schema: "lazarus.doctor/1", healthy: false });
    expect(findings.find(({ check }: { check: string }) => check === "registry")).toMatchObject({
      status: "failed",
    });
  });

  it("names the directory that cannot be written", () => {
    world.write("home/missions", "a file");
    expect(world.run(["doctor"]).stdout).toMatch(/failed {3}missions root: writing in .*missions/);
  });
});

describe("events", () => {
  it("prints a hint when there are no events", () => {
    expect(world.show("events")).toMatchInlineSnapshot(`
      "exit 0
      ── stderr
      no events yet; create a cell with: lazarus init <mission>
      "
    `);
    expect(world.show("events --json")).toMatchInlineSnapshot(`
      "exit 0
      "
    `);
  });

  it("prints the events of all missions or of one", () => {
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

  it("--follow waits for events until interrupted", () => {
    const { stdout } = world.shell(
      "lazarus events --follow --json > out & pid=$!; lazarus init m1 -q > /dev/null; until [ -s out ]; do sleep 0.05; done; kill -INT $pid; wait $pid; cat out",
      "/bin/bash",
    );
    expect(JSON.parse(stdout)).toMatchObject({ schema: "lazarus.event/1", seq: 1, mission: "m1" });
  });

  it("refuses a registry written by a newer Lazarus", () => {
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
      "an unusable registry is a warning, not a failure",
    ).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      <world>/home/missions/m2
      ── stderr
      warning: cannot write the event log: the registry <world>/home/registry.db has schema 99; this version of Lazarus supports up to <n>
      created the cell of m2: meta/ config/ state/ logs/ artifacts/ worktree/ logs/daemon.log meta/mission.json config/cell.json state/heartbeat.json
      next: lazarus run m2 -- COMMAND
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

  it("that cannot create its home names the directory", () => {
    expect(world.show("demo", { env: { TMPDIR: "/nowhere" } })).toMatchInlineSnapshot(`
      "exit 6
      ── stderr
      error: creating a temporary home in /nowhere: no such file or directory
        caused by: ENOENT: no such file or directory, mkdtemp '<demo>'
        try: ls -la /nowhere
      "
    `);
  });
});

describe("version and help", () => {
  it("have short forms", () => {
    const version = world.run(["--version"]).stdout;
    expect(version).toMatch(/^\d+\.\d+\.\d+\n$/);
    expect(world.run(["-V"]).stdout).toBe(version);
    expect(world.json("version --json")).toEqual({ schema: "lazarus.version/1", version: version.trim() });
    expect(world.run([]).stdout).toBe(world.run(["--help"]).stdout);
    expect(world.run(["help", "scan"]).stdout).toBe(world.run(["scan", "-h"]).stdout);
    expect(world.show("job --help")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      lazarus job beat: record that a job ran
      lazarus job check: list jobs that have not run on time
      "
    `);
  });

  it("of a command lists arguments, options, examples and exit codes", () => {
    expect(world.show("heartbeat --help")).toMatchInlineSnapshot(`
      "exit 0
      ── stdout
      lazarus heartbeat: record that a mission is alive

      Usage: lazarus heartbeat <mission> [options]

      Writes the heartbeat of a mission, which scan and the pit use to tell that its
      agent is alive. Agents call it between steps. Fields that other tools added to
      the file are kept. A heartbeat after more than stale_after_seconds of silence is
      recorded in the event log. An agent that has been replaced by a later life is
      refused.

      Arguments:
        mission                 id of the mission

      Options:
        --status TEXT           what the agent is doing; kept until changed
        --json                  print one JSON document on stdout
        --config FILE           use this config file
        -q, --quiet             print only warnings and errors on stderr
        -h, --help              show this help

      Examples:
        # record a heartbeat
        lazarus heartbeat tidy-inbox
        # with a status
        lazarus heartbeat tidy-inbox --status sorting

      Exit codes:
        0                       success
        1                       unexpected failure; please report it
        2                       wrong command line or request
        6                       no such mission, checkpoint, flow, run or file
        7                       refused: it would undo or repeat something
        8                       stored data is damaged
        9                       disk full, read-only, no permission, I/O error
        78                      invalid configuration
      "
    `);
  });

  it("work with an unreadable config", () => {
    world.write("cwd/lazarus.json", "{");
    expect(world.run(["scan", "--help"]).exit).toBe(0);
  });
});

describe("a usage error", () => {
  it.each([
    ["scna", 'unknown command "scna"; did you mean scan?', "lazarus --help"],
    ["frobnicate", 'unknown command "frobnicate"', "lazarus --help"],
    ["scan --wathc", 'unknown option "--wathc"; did you mean --watch?', "lazarus scan --help"],
    ["scan extra", 'unexpected argument "extra"', "lazarus scan --help"],
    ["heartbeat", "missing argument: mission", "lazarus heartbeat --help"],
    ["heartbeat m1 --status", "option --status needs a value: --status TEXT", "lazarus heartbeat --help"],
    ["job", "missing subcommand: lazarus job has: beat, check", "lazarus job --help"],
    ["job baet x", 'unknown subcommand "baet"; lazarus job has: beat, check', "lazarus job --help"],
    ["--quiet scan", 'unexpected option "--quiet": put options after the command', "lazarus --help"],
    ["help nothing", 'unknown command "nothing"', "lazarus --help"],
    ["events --last 1.5", "--last takes a whole number", "lazarus events --last 20"],
    ["completion tcsh", 'unknown shell "tcsh"; expected bash, zsh or fish', "lazarus completion --help"],
  ])("%s", async (line, error, hint) => {
    expect(await world.call(line.split(" "))).toEqual({
      exit: 2,
      stdout: "",
      stderr: `error: ${error}\n  try: ${hint}\n`,
    });
  });

  it("with --json is one document on stdout and nothing on stderr", () => {
    expect(world.show("scan --wathc --json")).toMatchInlineSnapshot(`
      "exit 2
      ── stdout
      {"schema":"lazarus.error/1","code":"USAGE","message":"unknown option \\"--wathc\\"; did you mean --watch?","hint":"lazarus scan --help","details":{}}
      "
    `);
  });
});
