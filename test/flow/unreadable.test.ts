// Unreadable and missing files and directories are reported: "OK" and "NO_CHECKPOINT" mean that everything was read.
// Permissions do not apply to root, so root runs these tests as nobody.
import { spawnSync } from "node:child_process";
import { chmodSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWorld, type World } from "../cli/hermetic.ts";
import { giveToPlainUser } from "../plain-user.ts";

let world: World;
let directory: string;
const asUser = (line: string) => world.run(line.split(" "), { asPlainUser: true });
const start = (workflow: string, more = "") =>
  asUser(`flow start -w ${workflow} --agent anna --idempotency k-${workflow} --step fetch${more}`);

beforeEach(() => {
  world = createWorld();
  directory = join(world.cwd, "memory/checkpoints");
  chmodSync(world.directory, 0o755);
  giveToPlainUser(world.directory);
  expect(start("report").exit).toBe(0);
});
afterEach(() => {
  spawnSync("chmod", ["-R", "u+rwx", world.directory]);
  world[Symbol.dispose]();
});

describe("an unreadable directory", () => {
  it.for(["memory", "memory/checkpoints"])(
    "is reported as an error, not OK or NO_CHECKPOINT: %s",
    (closed) => {
      chmodSync(join(world.cwd, closed), 0);
      expect(asUser("flow selfcheck")).toMatchObject({
        exit: 3,
        stdout: expect.stringMatching(
          /^ALERT .*\n- INVALID memory\/checkpoints .*cannot be opened \(EACCES\)$/m,
        ),
      });
      expect(asUser("flow list").stdout).toContain("INVALID\tcannot be opened (EACCES)");
      for (const line of [
        "flow resume",
        "flow prune",
        "flow update -w report --step x",
        "flow show -w report",
      ]) {
        const { exit, stdout, stderr } = asUser(line);
        expect(exit, `${line}: ${stdout}${stderr}`).toBe(9);
        expect(stderr).toContain(directory);
        expect(stderr).toContain("or run as the user who owns it");
      }
      expect(start("other").exit).toBe(9);
    },
  );

  it("of one agent does not hide the flows of others, and blocks a start", () => {
    expect(start("hidden", " --per-agent").exit).toBe(0);
    chmodSync(join(world.cwd, "agents/anna/memory/checkpoints"), 0);
    const resumed = asUser("flow resume");
    expect(resumed.exit).toBe(0);
    expect(JSON.parse(resumed.stdout).workflowId).toBe("report");
    expect(resumed.stderr).toContain("agents/anna/memory/checkpoints was skipped");
    const { stdout } = asUser("flow list");
    expect(stdout).toMatch(/^report\tin_progress/m);
    expect(stdout).toMatch(/^agents\/anna\/memory\/checkpoints\tINVALID/m);
    expect(start("third")).toMatchObject({ exit: 9, stderr: expect.stringContaining("agents/anna") });
  });
});

it("an unreadable file stays in place, since it may be valid", () => {
  const file = join(directory, "report.json");
  chmodSync(file, 0);
  const ended = asUser("flow resume");
  expect(ended).toMatchObject({
    exit: 9,
    stderr: expect.stringContaining(`reading ${file}: permission denied`),
  });
  expect(ended.stderr).toContain(`try: ls -ld ${file}`);
  expect(asUser("flow accept-edit -w report").exit).toBe(9);
  expect(readdirSync(directory)).toContain("report.json");
  chmodSync(file, 0o600);
  expect(JSON.parse(asUser("flow resume").stdout).workflowId).toBe("report");
});

it("a read-only directory is an error with a hint", () => {
  chmodSync(directory, 0o500);
  for (const line of [
    "flow resume",
    "flow update -w report --step x",
    "flow once -w report --key k -- true",
  ]) {
    const { exit, stderr } = asUser(line);
    expect(exit, stderr).toBe(9);
    expect(stderr).toContain(`try: ls -ld ${directory}, or run as the user who owns it`);
  }
  expect(asUser("flow list").stdout).toContain("report\tin_progress");
  expect(asUser("flow selfcheck")).toMatchObject({ exit: 0, stdout: "OK\n" });
  chmodSync(world.cwd, 0o500);
  expect(asUser("flow install --agents-md")).toMatchObject({
    exit: 9,
    stderr: expect.stringContaining(`changing ${world.cwd}/AGENTS.md: permission denied`),
  });
});

it.for([
  "list",
  "selfcheck",
  "resume",
  "prune",
  "resume -w x",
  "start -w a --agent b --idempotency c --step d",
])("a missing workspace is an error: flow %s", (line) => {
  const root = world.path("not-mounted");
  expect(asUser(`flow ${line} --root ${root}`)).toEqual({
    exit: 6,
    stdout: "",
    stderr: `error: workspace ${root} does not exist\n  try: ls -ld ${root}, or name another workspace with --root\n`,
  });
  expect(readFileSync(join(directory, "report.json"), "utf8")).toContain("fetch");
});
