// `lazarus install` and `uninstall`: what they add to a user's config, and that nothing else changes.
import {
  chmodSync,
  existsSync,
  lstatSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWorld, type World } from "./hermetic.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

const SETTINGS = "user/.claude/settings.json";
/** With an unusual indent and key order, and no final newline. */
const OWN =
  '{\n    "model": "opus",\n    "hooks": {"Stop": [{"hooks": [{"type": "command", "command": "say done"}]}]}\n}';
const read = () => readFileSync(world.path(SETTINGS), "utf8");

describe("install claude", () => {
  it("adds hooks, twice changes nothing, and uninstall restores the file byte for byte", async () => {
    const file = world.write(SETTINGS, OWN);
    chmodSync(file, 0o640);
    expect(await world.call(["install", "claude"])).toMatchObject({ exit: 0, stdout: `wrote ${file}\n` });
    const { hooks, model } = JSON.parse(read());
    expect(model).toBe("opus");
    expect(hooks.Stop[0].hooks[0].command).toBe("say done");
    expect(hooks.PreToolUse[0].hooks[0].command).toMatch(
      /^\/bin\/sh -c '.*' sh 5 lazarus hook claude --installed$/,
    );
    expect(hooks.SessionStart[0].hooks[0].command).toMatch(
      /^\/bin\/sh -c '.*' sh lazarus hook claude --installed$/,
    );
    expect(statSync(file).mode & 0o777).toBe(0o640);
    const installed = read();
    expect((await world.call(["install", "claude"])).stdout).toBe(`${file} is up to date\n`);
    expect(read()).toBe(installed);
    await world.call(["uninstall", "claude"]);
    expect(read()).toBe(OWN);
    expect(statSync(file).mode & 0o777).toBe(0o640);
    expect(existsSync(world.path("home/run/installed/claude.json"))).toBe(false);
  });

  it("creates the file, and removes it again", async () => {
    await world.call(["install", "claude"]);
    expect(statSync(world.path(SETTINGS)).mode & 0o777).toBe(0o600);
    await world.call(["uninstall", "claude"]);
    expect(existsSync(world.path(SETTINGS))).toBe(false);
  });

  it("with --dry-run shows the difference and changes nothing", async () => {
    world.write(SETTINGS, OWN);
    const { stdout } = await world.call(["install", "claude", "--dry-run"]);
    expect(stdout).toContain("would change");
    expect(stdout).toMatch(/^ {2}\+ .*lazarus hook claude --installed/m);
    expect(read()).toBe(OWN);
    expect(existsSync(world.path("home/run/installed"))).toBe(false);
  });

  it("removes only its own hooks from a file that was changed since, and says so", async () => {
    world.write(SETTINGS, OWN);
    await world.call(["install", "claude"]);
    writeFileSync(world.path(SETTINGS), read().replace('"opus"', '"sonnet"'));
    const { stderr } = await world.call(["uninstall", "claude"]);
    expect(stderr).toContain("was changed since the install; only the Lazarus hooks are removed");
    expect(JSON.parse(read())).toEqual({ ...JSON.parse(OWN), model: "sonnet" });
  });

  it("keeps the original over an update", async () => {
    world.write(SETTINGS, OWN);
    await world.call(["install", "claude"]);
    const original = world.path("home/run/installed/claude.json");
    const record = JSON.parse(readFileSync(original, "utf8"));
    // As an earlier version installed it.
    const earlier = read().replaceAll("PreToolUse", "PreToolUseOfOld");
    writeFileSync(world.path(SETTINGS), earlier);
    writeFileSync(original, JSON.stringify({ ...record, files: [{ ...record.files[0], after: earlier }] }));
    await world.call(["install", "claude"]);
    expect(read()).not.toContain("PreToolUseOfOld");
    await world.call(["uninstall", "claude"]);
    expect(read()).toBe(OWN);
  });

  it("edits the target of a link, and keeps the link", async () => {
    const target = world.write("dotfiles/settings.json", OWN);
    world.write("user/.claude/x", "");
    symlinkSync(target, world.path(SETTINGS));
    await world.call(["install", "claude"]);
    expect(lstatSync(world.path(SETTINGS)).isSymbolicLink()).toBe(true);
    expect(readFileSync(target, "utf8")).toContain("lazarus hook claude");
    await world.call(["uninstall", "claude"]);
    expect(readFileSync(target, "utf8")).toBe(OWN);
  });

  it.each(["{ broken", "[]", '{"hooks": 7}', "// a comment\n{}"])("refuses %j", async (text) => {
    const file = world.write(SETTINGS, text);
    const { exit, stderr } = await world.call(["install", "claude"]);
    expect(exit).toBe(78);
    expect(stderr).toContain(`${file} was not changed`);
    expect(read()).toBe(text);
  });

  it("is refused inside an agent", () => {
    const { exit, stderr } = world.run(["install", "claude"], { env: { LAZARUS_EPOCH: "1" } });
    expect(exit).toBe(2);
    expect(stderr).toContain("only a human can");
  });
});

describe("other agents", () => {
  it.each([
    ["opencode", "user/.config/opencode/plugin/lazarus.js"],
    ["pi", "user/.pi/agent/extensions/lazarus.ts"],
    ["copilot", "user/.copilot/hooks/lazarus.json"],
    ["cline", "user/.cline/hooks/PreToolUse"],
  ])("%s gets a file of its own", async (agent, path) => {
    await world.call(["install", agent]);
    expect(world.read(path)).toContain("lazarus");
    if (agent === "cline") expect(statSync(world.path(path)).mode & 0o777).toBe(0o700);
    await world.call(["uninstall", agent]);
    expect(existsSync(world.path(path))).toBe(false);
  });

  it("does not replace the user's own hook", async () => {
    world.write("user/.cline/hooks/PreToolUse", "#!/bin/sh\nmine\n");
    const { exit, stderr } = await world.call(["install", "cline"]);
    expect([exit, stderr]).toEqual([78, expect.stringContaining("was not written by Lazarus")]);
    expect(existsSync(world.path("user/.cline/hooks/TaskStart"))).toBe(false);
  });

  it("names what can be installed", async () => {
    expect((await world.call(["install", "vim"])).stderr).toContain("expected one of: claude");
    expect((await world.call(["install", "openclaw"])).exit).toBe(11);
  });
});

it("installs the skill, and removes it with its directory", async () => {
  await world.call(["install", "skill"]);
  const skill = world.read("cwd/.agents/skills/lazarus/SKILL.md");
  expect(skill).toMatch(/^---\nname: lazarus\ndescription: .{50,1024}\n---\n/);
  await world.call(["uninstall", "skill"]);
  expect(existsSync(world.path("cwd/.agents/skills/lazarus"))).toBe(false);
});

describe("doctor", () => {
  const agent = async (name: string) => {
    const { stdout } = await world.call(["doctor", "--json"]);
    const { findings } = JSON.parse(stdout) as {
      findings: { check: string; status: string; note: string }[];
    };
    return findings.find(({ check }) => check === `agent ${name}`);
  };

  it("reports installed hooks, and what keeps them from running", async () => {
    expect(await agent("codex")).toBeUndefined();
    await world.call(["install", "codex"]);
    expect(await agent("codex")).toMatchObject({
      status: "ok",
      note: expect.stringMatching(/hooks installed in .*hooks\.json; they run only once you trust them/),
    });
  });

  it.each([
    ["trusted", "ok", "it trusts those that lazarus run passes"],
    ["modified", "warning", "it does not trust those that lazarus run passes"],
    [undefined, "warning", "it did not say whether it trusts"],
  ])("asks Codex whether it trusts the hooks of a run: %s", async (trustStatus, status, note) => {
    const hooks = [{ trustStatus: "trusted" }, ...(trustStatus === undefined ? [] : [{ trustStatus }])];
    const answer = { id: 2, ...(trustStatus !== undefined && { result: { data: [{ hooks }] } }) };
    const pack = "bin/node_modules/@openai/codex";
    world.write(`${pack}/package.json`, '{"name": "@openai/codex", "version": "0.169.0"}');
    const program = world.write(
      `${pack}/codex`,
      `#!/bin/sh
test "$HOME" = "$CODEX_HOME" && exit 1
case "$*" in *'hooks.Stop='*trusted_hash*app-server) ;; *) exit 1 ;; esac
while read -r line; do case $line in *hooks/list*) echo 'not json'; echo '${JSON.stringify(answer)}' ;; esac; done
`,
    );
    chmodSync(program, 0o755);
    symlinkSync(program, world.path("bin/codex"));
    const { stdout } = await world.call(["doctor", "--json"]);
    const { findings } = JSON.parse(stdout) as { findings: { check: string }[] };
    expect(findings.find(({ check }) => check === "hooks of codex")).toMatchObject({
      status,
      note: expect.stringContaining(note),
    });
  });

  it("reports a version newer than the tested one", async () => {
    world.write("bin/lib/package.json", '{"name": "@mariozechner/pi-coding-agent", "version": "99.0.0"}');
    symlinkSync(world.write("bin/lib/cli.js", ""), world.path("bin/pi"));
    expect(await agent("pi")).toMatchObject({
      status: "warning",
      note: expect.stringContaining("99.0.0; newer than"),
    });
  });
});

describe("hooks that run cannot pass", () => {
  it("are reported by run and doctor until they are installed", () => {
    const pack = "bin/node_modules/@google/gemini-cli";
    world.write(`${pack}/package.json`, '{"name":"@google/gemini-cli","version":"0.61.0"}');
    chmodSync(world.write(`${pack}/gemini`, "#!/bin/sh\nexit 0\n"), 0o755);
    const env = { PATH: `${world.path(pack)}:${world.env.PATH}` };
    const start = () => world.run(["run", "m1", "--replace", "--", "gemini", "-p", "write"], { env }).stderr;
    const doctor = () => world.run(["doctor"], { env }).stdout;
    expect(start()).toContain("hooks of gemini are not installed");
    expect(doctor()).toMatch(
      /agent gemini: 0\.61\.0; its hooks are not installed[\s\S]*lazarus install gemini/,
    );
    world.run(["install", "gemini"]);
    expect(start()).not.toContain("not installed");
    expect(doctor()).not.toContain("its hooks are not installed");
  });
});
