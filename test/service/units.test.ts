// `pit install`: its files are checked with the programs that read them, where installed; idempotent and removable.
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import { cronLine } from "../../src/service/cron.ts";
import { launchdPlist } from "../../src/service/launchd.ts";
import {
  carryOut,
  planServiceInstall,
  planServiceUninstall,
  type RunProgram,
} from "../../src/service/plan.ts";
import { systemdFiles } from "../../src/service/systemd.ts";
import { type PitUnitRequest, pitUnit } from "../../src/service/unit.ts";
import { createWorld } from "../cli/hermetic.ts";

const directory = mkdtempSync(join(tmpdir(), "lazarus-units-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const HOSTILE = "/srv/a b/100%/\"q\"/$HOME/'x'/<&>";

function requestFor(
  scheduler: PitUnitRequest["scheduler"],
  more: Partial<PitUnitRequest> = {},
): PitUnitRequest {
  return {
    scheduler,
    scope: "user",
    program: [process.execPath, "/srv/lazarus/bin/lazarus.js"],
    home: join(directory, "home"),
    searchPath: "/usr/local/bin:/usr/bin:/bin",
    ...more,
  };
}

function systemdUnit(request: PitUnitRequest) {
  const files = systemdFiles(pitUnit(request));
  expect(files).toHaveLength(1);
  return files[0]!;
}

const has = (program: string) => spawnSync("which", [program]).status === 0;

describe("the systemd unit", () => {
  it("keeps agents running and restarts the pit", () => {
    const { text, path } = systemdUnit(requestFor("systemd"));
    expect(path).toBe(join(directory, "home/.config/systemd/user/lazarus-pit.service"));
    for (const line of [
      "Type=notify",
      "NotifyAccess=main",
      "Restart=always",
      "WatchdogSec=60",
      "KillMode=process",
      "Delegate=yes",
      "OOMPolicy=continue",
      "WantedBy=default.target",
    ])
      expect(text.split("\n")).toContain(line);
    const system = systemdUnit(requestFor("systemd", { scope: "system", runAs: "agents" }));
    expect(system.path).toBe("/etc/systemd/system/lazarus-pit.service");
    expect(system.text).toContain("User=agents\n");
    expect(system.text).toContain("WantedBy=multi-user.target");
  });

  it("passes systemd-analyze verify, even with hostile paths", ({ skip }) => {
    if (!has("systemd-analyze")) skip("systemd-analyze is not installed");
    const program = join(directory, "prog ram %s $x \\ 'q'");
    writeFileSync(program, "#!/bin/sh\n", { mode: 0o755 });
    for (const more of [
      {},
      { lazarusHome: HOSTILE, configFile: `${HOSTILE}/c.json`, program: [program, HOSTILE] },
    ]) {
      const { text } = systemdUnit(requestFor("systemd", more));
      const file = join(directory, "lazarus-pit-check.service");
      writeFileSync(file, text);
      const { status, stderr } = spawnSync("systemd-analyze", ["verify", "--man=no", file], {
        encoding: "utf8",
      });
      expect(stderr.split("\n").filter((line) => line.includes("lazarus-pit-check"))).toEqual([]);
      expect(status).toBe(0);
    }
  });
});

describe("the launchd job", () => {
  it("is a valid plist with the same settings", ({ skip }) => {
    if (!has("python3")) skip("reading a plist needs python3");
    const { text } = launchdPlist(pitUnit(requestFor("launchd", { lazarusHome: HOSTILE })));
    const file = join(directory, "job.plist");
    writeFileSync(file, text);
    const read = spawnSync(
      "python3",
      ["-c", "import plistlib,json,sys; print(json.dumps(plistlib.load(open(sys.argv[1],'rb'))))", file],
      { encoding: "utf8" },
    );
    expect(read.stderr).toBe("");
    expect(JSON.parse(read.stdout)).toMatchObject({
      ProgramArguments: [process.execPath, "/srv/lazarus/bin/lazarus.js", "pit"],
      EnvironmentVariables: { LAZARUS_HOME: HOSTILE },
      KeepAlive: true,
      RunAtLoad: true,
      AbandonProcessGroup: true,
    });
  });
});

describe("the cron line", () => {
  it("starts the pit every minute, even with hostile paths", () => {
    const program = join(directory, "show");
    writeFileSync(program, '#!/bin/sh\nprintf "%s|" "$LAZARUS_HOME" "$@" >"$OUT"\n', { mode: 0o755 });
    const line = cronLine(pitUnit(requestFor("cron", { lazarusHome: HOSTILE, program: [program, HOSTILE] })));
    expect(line).toMatch(/^\* \* \* \* \* .* # lazarus-pit-[0-9a-f]{8}$/);
    const command = line.replace(/^(\S+ ){5}/, "").replaceAll("\\%", "%");
    const out = join(directory, "out");
    spawnSync("/bin/sh", ["-c", command], { env: { PATH: "/usr/bin:/bin", OUT: out } });
    expect(readFileSync(out, "utf8")).toBe(`${HOSTILE}|${HOSTILE}|pit|--quiet|`);
  });
});

describe("homes", () => {
  it("have separate units; the default one has the plain name", () => {
    const name = (more: Partial<PitUnitRequest>) => pitUnit(requestFor("systemd", more)).name;
    expect(name({})).toBe("lazarus-pit");
    expect(
      new Set([
        name({}),
        name({ lazarusHome: "/a" }),
        name({ lazarusHome: "/b" }),
        name({ configFile: "/a" }),
      ]).size,
    ).toBe(4);
  });
});

describe("installing", () => {
  const commands: string[][] = [];
  let crontab = "0 5 * * * backup\n";
  const run: RunProgram = (command, input) => {
    commands.push([...command]);
    if (command[1] === "-l") return { code: 0, stdout: crontab, stderr: "" };
    if (command[0] === "crontab") crontab = input ?? "";
    return { code: 0, stdout: "", stderr: "" };
  };
  const install = (request: PitUnitRequest) => {
    commands.length = 0;
    expect(
      carryOut(systemMachine, planServiceInstall(pitUnit(request), request.scheduler, run), run),
    ).toEqual([]);
    return commands.map((words) => words.join(" "));
  };
  const uninstall = (request: PitUnitRequest) => {
    commands.length = 0;
    expect(
      carryOut(systemMachine, planServiceUninstall(pitUnit(request), request.scheduler, run), run),
    ).toEqual([]);
    return commands.map((words) => words.join(" "));
  };

  it("systemd: install, install again, uninstall, uninstall again", () => {
    const request = requestFor("systemd");
    const units = join(directory, "home/.config/systemd/user");
    expect(install(request)).toEqual([
      "systemctl --user daemon-reload",
      "systemctl --user enable lazarus-pit.service",
      "systemctl --user restart lazarus-pit.service",
    ]);
    expect(install(request)).toEqual(["systemctl --user enable --now lazarus-pit.service"]);
    expect(readdirSync(units)).toEqual(["lazarus-pit.service"]);
    expect(uninstall(request)).toEqual([
      "systemctl --user disable --now lazarus-pit.service",
      "systemctl --user daemon-reload",
    ]);
    expect(readdirSync(units)).toEqual([]);
    expect(uninstall(request)).toEqual([]);
  });

  it("launchd: install, install again, uninstall, uninstall again", () => {
    const request = requestFor("launchd");
    expect(install(request)).toHaveLength(1);
    expect(install(request)).toEqual([]);
    expect(uninstall(request)).toHaveLength(1);
    expect(uninstall(request)).toEqual([]);
  });

  it("cron: adds one line to the crontab and removes it byte for byte", () => {
    const request = requestFor("cron");
    const before = crontab;
    install(request);
    expect(crontab.split("\n")).toHaveLength(3);
    const once = crontab;
    install(request);
    expect(crontab).toBe(once);
    uninstall(request);
    expect(crontab).toBe(before);
  });

  it("a foreign unit is not changed", () => {
    const request = requestFor("systemd", { home: join(directory, "other") });
    const { path } = systemdUnit(request);
    mkdirSync(join(path, ".."), { recursive: true });
    writeFileSync(path, "[Unit]\n");
    expect(install(request)).toEqual([]);
    expect(uninstall(request)).toEqual([]);
    expect(readFileSync(path, "utf8")).toBe("[Unit]\n");
  });
});

describe("the command", () => {
  it("prints the plan and writes nothing on a dry run; invalid arguments are usage errors", () => {
    using world = createWorld();
    const dry = world.run(["pit", "install", "systemd", "--user", "--dry-run"]);
    expect([dry.exit, dry.stdout]).toEqual([0, expect.stringContaining("would write")]);
    expect(dry.stdout).toContain("KillMode=process");
    expect(dry.stdout).toContain(`LAZARUS_HOME=${world.home}`);
    expect(readdirSync(world.path("user"))).not.toContain(".config");
    expect(world.run(["pit", "install", "upstart"]).exit).toBe(2);
    expect(world.run(["pit", "install", "systemd", "--user", "--system"]).exit).toBe(2);
    expect(world.run(["pit", "uninstall", "systemd", "--user", "--dry-run"]).stdout).toContain(
      "does not exist",
    );
  });
});
