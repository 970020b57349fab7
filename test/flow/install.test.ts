// `flow install`: its files are checked with the programs that read them, where installed, and are removed byte for byte.
import { spawnSync } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterAll, describe, expect, it } from "vitest";
import { HEADING, withoutSection, withSection } from "../../src/flow/install/agents-md.ts";
import { planInstall, planUninstall } from "../../src/flow/install/install.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { cronLine, editCrontab } from "../../src/service/cron.ts";
import { launchdPlist } from "../../src/service/launchd.ts";
import { carryOut, type RunProgram } from "../../src/service/plan.ts";
import { systemdFiles } from "../../src/service/systemd.ts";
import { type SelfcheckUnitRequest, selfcheckUnit } from "../../src/service/unit.ts";
import { createWorld } from "../cli/hermetic.ts";

const directory = mkdtempSync(join(tmpdir(), "lazarus-install-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

describe("the section in AGENTS.md", () => {
  const rest = fc.oneof(
    fc.string({ unit: "binary" }),
    fc
      .array(fc.constantFrom("# Title", "text", "", "## Other", "\r"), { maxLength: 6 })
      .map((lines) => lines.join("\n")),
    fc.array(fc.constantFrom("# Title", "text", ""), { maxLength: 6 }).map((lines) => lines.join("\r\n")),
  );
  const textOf = (change: ReturnType<typeof withSection>) => {
    if (change.kind === "left-alone") throw new Error(change.reason);
    return change.text;
  };

  it("is added once, refreshed, and removed byte for byte, with any other content", () => {
    fc.assert(
      fc.property(rest, (text) => {
        const added = textOf(withSection(text));
        expect(added.startsWith(text)).toBe(true);
        expect(added.split(HEADING).length).toBe(2);
        expect(withSection(added)).toEqual({ kind: "unchanged", text: added });
        const older = added.replace("On start-up", "An older text");
        expect(withSection(older)).toEqual({ kind: "refreshed", text: added });
        expect(textOf(withoutSection(added))).toBe(text);
        expect(withoutSection(text)).toEqual({ kind: "unchanged", text });
      }),
    );
  });

  it("stays in its place when text follows it", () => {
    const added = `${textOf(withSection("# A\n"))}\n# B\n`;
    expect(textOf(withSection(added.replace("On start-up", "older")))).toBe(added);
    expect(textOf(withoutSection(added))).toBe("# A\n\n\n# B\n");
  });

  it("does not change sections of others", () => {
    expect(withSection(`# A\n\n${HEADING}\nBy hand.\n`)).toMatchObject({ kind: "left-alone" });
    expect(withSection("<!-- lazarus flow: end -->\n")).toMatchObject({ kind: "left-alone" });
    expect(withoutSection(`${HEADING}\n`)).toMatchObject({ kind: "unchanged" });
  });

  it("is neither refreshed nor removed when it occurs twice", () => {
    const twice = textOf(withSection("# A\n")).repeat(2);
    for (const edit of [withSection, withoutSection]) {
      expect(edit(twice)).toMatchObject({
        kind: "left-alone",
        reason: expect.stringContaining("more than once"),
      });
    }
  });

  it.for([
    ["Latin-1", Buffer.from("# T\xe9t\n", "latin1")],
    ["UTF-16", Buffer.from("\ufeff# A\n", "utf16le")],
    ["markers that do not pair up", Buffer.from("<!-- lazarus flow: begin -->\n")],
  ] as const)("does not change %s, and reports that with its exit code", ([, bytes]) => {
    using world = createWorld();
    const file = join(world.cwd, "AGENTS.md");
    writeFileSync(file, bytes);
    for (const verb of ["install", "uninstall"]) {
      const { exit, stdout } = world.run(["flow", verb, "--agents-md"]);
      expect(stdout).toContain(`${file} was not changed: `);
      expect(exit).toBe(5);
    }
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  it("keeps a byte order mark, line endings and a missing last line break", () => {
    using world = createWorld();
    const file = join(world.cwd, "AGENTS.md");
    const bytes = Buffer.from("\ufeff# A\r\nlast line");
    writeFileSync(file, bytes, { mode: 0o444 });
    expect(world.run(["flow", "install", "--agents-md"]).exit).toBe(0);
    expect(readFileSync(file).subarray(0, bytes.length).equals(bytes)).toBe(true);
    expect(readFileSync(file, "utf8").replaceAll("\r\n", "")).not.toContain("\n");
    expect(lstatSync(file).mode & 0o777).toBe(0o444);
    expect(world.run(["flow", "uninstall", "--agents-md"]).exit).toBe(0);
    expect(readFileSync(file).equals(bytes)).toBe(true);
  });

  it.for(["a directory", "a FIFO", "a dangling link"])("is not written to %s", (what) => {
    using world = createWorld();
    const file = join(world.cwd, "AGENTS.md");
    if (what === "a directory") mkdirSync(file);
    else if (what === "a FIFO") expect(spawnSync("mkfifo", [file]).status).toBe(0);
    else symlinkSync("CLAUDE.md", file);
    const { exit, stderr } = world.run(["flow", "install", "--agents-md"]);
    expect(exit, stderr).toBe(what === "a dangling link" ? 6 : 7);
    expect(stderr).toMatch(/^error: .*AGENTS\.md is .*\n {2}try: ls -/);
    expect(lstatSync(file).isFile()).toBe(false);
  });

  it("leaves an empty link target when removed, so that the link does not dangle", () => {
    using world = createWorld();
    writeFileSync(join(world.cwd, "CLAUDE.md"), "");
    symlinkSync("CLAUDE.md", join(world.cwd, "AGENTS.md"));
    for (const verb of ["install", "uninstall"]) {
      expect(world.run(["flow", verb, "--agents-md"]).exit).toBe(0);
    }
    expect(readFileSync(join(world.cwd, "AGENTS.md"), "utf8")).toBe("");
  });

  it("is written to the target of a link, unless that is outside", () => {
    const root = join(directory, "linked");
    mkdirSync(root);
    writeFileSync(join(root, "CLAUDE.md"), "# Mine\n", { mode: 0o640 });
    symlinkSync("CLAUDE.md", join(root, "AGENTS.md"));
    carryOut(systemMachine, planInstall(request(root, { agentsMd: true }), noPrograms), noPrograms);
    expect(lstatSync(join(root, "AGENTS.md")).isSymbolicLink()).toBe(true);
    expect(readFileSync(join(root, "CLAUDE.md"), "utf8")).toContain(HEADING);
    expect(lstatSync(join(root, "CLAUDE.md")).mode & 0o777).toBe(0o640);
    const outside = join(directory, "outside");
    mkdirSync(outside);
    symlinkSync(join(root, "CLAUDE.md"), join(outside, "AGENTS.md"));
    expect(() => planInstall(request(outside, { agentsMd: true }), noPrograms)).toThrow(
      "outside the workspace",
    );
  });
});

const noPrograms: RunProgram = () => ({ code: 0, stdout: "", stderr: "" });
const HOSTILE = join(directory, `we%i"rd $HOME 'dir' & <x>\\`);
const schedule = (root: string): SelfcheckUnitRequest => ({
  root,
  program: [process.execPath, "/opt/laz arus/lazarus.js"],
  home: join(directory, "home"),
  isRoot: false,
  staleMinutes: 10,
});
function request(root: string, parts: object) {
  return { ...schedule(root), agentsMd: false, schedule: undefined, skills: undefined, ...parts };
}
const words = (root: string) => [
  ...schedule(root).program,
  "flow",
  "selfcheck",
  "--root",
  root,
  "--stale-min",
  "10",
];
const has = (program: string, ...args: string[]) => spawnSync(program, args).error === undefined;
const hasSystemd = has("systemd-analyze", "--version");
const hasPython = has("python3", "--version");
for (const [installed, what] of [
  [hasSystemd, "systemd-analyze"],
  [hasPython, "python3 (plistlib)"],
] as const) {
  if (!installed) process.stderr.write(`skipped: a check of installed units, since ${what} is missing\n`);
}

describe("the schedule", () => {
  it.skipIf(!hasSystemd)("passes systemd-analyze verify, even with a hostile path", () => {
    for (const root of [join(directory, "plain"), HOSTILE]) {
      const units = join(directory, `units-${selfcheckUnit(schedule(root)).name}`);
      mkdirSync(units);
      // The program must exist for verify: sh stands in for the launcher's Node.
      const made = systemdFiles(
        selfcheckUnit({ ...schedule(root), program: ["/bin/sh", "/opt/laz arus/x.js"] }),
      );
      for (const { path, text } of made) writeFileSync(join(units, path.split("/").at(-1)!), text);
      const files = readdirSync(units).map((name) => join(units, name));
      const { status, stderr } = spawnSync("systemd-analyze", ["verify", ...files], { encoding: "utf8" });
      const aboutUs = stderr.split("\n").filter((line) => line.includes("lazarus-flow"));
      expect(aboutUs).toEqual([]);
      if (status !== 0) expect(stderr).not.toContain("lazarus-flow");
    }
  });

  it.skipIf(!hasPython)("is a plist that parses back to the same arguments", () => {
    const { text } = launchdPlist(selfcheckUnit(schedule(HOSTILE)));
    const script = "import plistlib,sys,json; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";
    const { stdout, stderr } = spawnSync("python3", ["-c", script], { input: text, encoding: "utf8" });
    expect(stderr).toBe("");
    expect(JSON.parse(stdout)).toMatchObject({
      ProgramArguments: words(HOSTILE),
      StartInterval: 600,
      RunAtLoad: true,
    });
  });

  it("is a cron line that a shell parses back to the same arguments", () => {
    const line = cronLine(selfcheckUnit(schedule(HOSTILE)));
    expect(line).toMatch(/^\*\/10 \* \* \* \* /);
    // As in cron: the command ends at the first unescaped %, and \% is %.
    const command = line.replace("*/10 * * * * ", "").replaceAll("\\%", "%");
    const { stdout } = spawnSync(
      "/bin/sh",
      ["-c", command.replace(/^\S+/, "printf '%s\\n'").replace(" >/dev/null 2>&1", "")],
      { encoding: "utf8" },
    );
    expect(stdout.trimEnd().split("\n")).toEqual(words(HOSTILE).slice(1));
  });

  it("is added to and removed from a crontab without changing other lines", () => {
    const { name } = selfcheckUnit(schedule("/w"));
    const others = "MAILTO=me\n0 3 * * * backup\n";
    const line = cronLine(selfcheckUnit(schedule("/w")));
    const once = editCrontab(others, name, line);
    expect(once).toBe(`${others}${line}\n`);
    expect(editCrontab(once, name, line)).toBe(once);
    expect(editCrontab(once, name, undefined)).toBe(others);
    expect(editCrontab(line, name, undefined)).toBe("");
  });

  it("never writes a crontab that could not be read first", () => {
    const failing: RunProgram = () => ({ code: 1, stdout: "", stderr: "permission denied" });
    expect(() => planInstall(request("/w", { schedule: "cron" }), failing)).toThrow("cannot be read");
    const noCrontab: RunProgram = () => ({ code: 1, stdout: "", stderr: "no crontab for me" });
    expect(planInstall(request("/w", { schedule: "cron" }), noCrontab)).toMatchObject([
      { do: "run", command: ["crontab", "-"] },
    ]);
  });

  it.for(["systemd", "launchd"] as const)(
    "of %s is installed and removed; a foreign unit stays",
    (scheduler) => {
      const root = join(directory, `s-${scheduler}`);
      const installRequest = request(root, { schedule: scheduler, skills: join(root, "skills") });
      const ran: string[] = [];
      const run: RunProgram = (command) => {
        ran.push(command.join(" "));
        return { code: 0, stdout: "", stderr: "" };
      };
      expect(carryOut(systemMachine, planInstall(installRequest, run), run)).toEqual([]);
      expect(ran.join("\n")).toContain(scheduler === "systemd" ? "enable --now" : "launchctl load");
      const files = planUninstall(installRequest, run).filter((action) => action.do === "remove");
      expect(files).toHaveLength(scheduler === "systemd" ? 3 : 2);
      expect(carryOut(systemMachine, planUninstall(installRequest, run), run)).toEqual([]);
      expect(planUninstall(installRequest, run).filter((action) => action.do === "remove")).toEqual([]);
      const path = (
        scheduler === "systemd"
          ? systemdFiles(selfcheckUnit(installRequest))[0]!
          : launchdPlist(selfcheckUnit(installRequest))
      ).path;
      writeFileSync(path, "mine");
      carryOut(systemMachine, planInstall(installRequest, run), run);
      carryOut(systemMachine, planUninstall(installRequest, run), run);
      expect(readFileSync(path, "utf8")).toBe("mine");
    },
  );
});

describe("a scheduled self-check", () => {
  it("uses the settings of the installing user in any environment", () => {
    using world = createWorld();
    const config = world.write("home/config.json", '{"flow":{"alert_command":"mail me"}}');
    const planned = (scheduler: string) => {
      const { exit, stdout, stderr } = world.run(["flow", "install", "--schedule", scheduler, "--dry-run"]);
      expect(exit, stderr).toBe(0);
      expect(stderr).not.toContain("no alerts are sent");
      return stdout;
    };
    expect(planned("systemd")).toContain(`--stale-min 10 --config ${config}\n`);
    expect(planned("cron")).toContain(`--stale-min 10 --config ${config} >/dev/null`);
    expect(planned("launchd")).toContain(`<string>${config}</string>`);
  });

  it("without alert targets prints a warning", () => {
    using world = createWorld();
    const { stdout, stderr } = world.run(["flow", "install", "--schedule", "cron", "--dry-run"]);
    expect(stdout).not.toContain("--config");
    expect(stderr).toMatch(/^no alerts are sent yet: set flow\.alert_command or flow\.alert_webhook in /);
  });
});

describe("the skill", () => {
  it("is a folder with a SKILL.md whose front matter names it", () => {
    using world = createWorld();
    expect(world.run(["flow", "install", "--skill", "--agents-md"]).exit).toBe(0);
    const skill = readFileSync(join(world.cwd, "skills/restart-safe-flow/SKILL.md"), "utf8");
    const front = /^---\nname: ([a-z-]+)\ndescription: (.+)\n---\n/.exec(skill);
    expect(front?.[1]).toBe("restart-safe-flow");
    expect(front?.[2]?.length).toBeLessThanOrEqual(1024);
    expect(readFileSync(join(world.cwd, "AGENTS.md"), "utf8")).toContain(`${HEADING}\n`);
    expect(world.run(["flow", "uninstall", "--skill", "--agents-md"]).exit).toBe(0);
    expect(readdirSync(world.cwd)).toEqual(["skills"]);
    expect(readdirSync(join(world.cwd, "skills"))).toEqual([]);
  });

  it("is only printed by --dry-run, like everything else", () => {
    using world = createWorld();
    const { exit, stdout } = world.run([
      "flow",
      "install",
      "--skill",
      "--agents-md",
      "--schedule",
      "systemd",
      "--dry-run",
    ]);
    expect(exit).toBe(0);
    expect(stdout).toContain("would write");
    expect(readdirSync(world.cwd)).toEqual([]);
  });
});
