// How the command behaves in a shell: closed pipes, colors, completions.
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createWorld, type World } from "./hermetic.ts";

let world: World;
beforeEach(() => {
  world = createWorld();
});
afterEach(() => world[Symbol.dispose]());

const bash = (script: string) => world.shell(script, "/bin/bash");

describe("a closed stdout", () => {
  it("ends the command without an error or a stack trace", () => {
    for (const mission of ["a", "b", "c"]) world.run(["init", mission]);
    for (const line of ["scan", "scan --json", "events", "config", "--help", "completion bash"]) {
      const { stdout, stderr, exit } = bash(
        `set -o pipefail; lazarus ${line} | head -c 1 > /dev/null; echo $?`,
      );
      expect({
        line,
        stdout,
        stderr: stderr.replace(/^config file.*|^no config file.*\n/, ""),
        exit,
      }).toEqual({
        line,
        stdout: "0\n",
        stderr: "",
        exit: 0,
      });
    }
  });

  it("ends a watch", () => {
    world.run(["init", "m1"]);
    expect(
      bash(
        "set -o pipefail; timeout 500 lazarus scan --watch --interval 0.01 | head -1 > /dev/null; echo $?",
      ),
    ).toMatchObject({
      stdout: "0\n",
      stderr: "",
    });
  });

  it("does not change the exit code of a failure", () => {
    expect(bash("{ lazarus nosuch --json; echo $? >&2; } | true").stderr).toBe("2\n");
    expect(bash("exec 3>&1; { lazarus nosuch; echo $? >&3; } 2>&1 | true").stdout).toBe("2\n");
    expect(bash("lazarus scan >&-; echo $?").stderr).not.toContain("at ");
  });

  it("a slow reader gets the whole output", () => {
    for (let n = 0; n < 3; n += 1) world.run(["init", `m${n}`]);
    const { stdout } = bash(
      "for i in $(seq 40); do cp -r ../home/missions/m0 ../home/missions/n$i; done; lazarus scan --json | { sleep 0.3; cat; }",
    );
    expect(JSON.parse(stdout).summary.total_cells).toBe(43);
  });
});

describe("a closed stderr", () => {
  it("does not change what a command does, or its exit code", () => {
    const run = (line: string) =>
      bash(`exec 3>&1; mkfifo p; true < p & exec 4> p; wait; ${line} 2>&4; echo $? >&3; rm p`).stdout;
    expect(run("lazarus run m1 --revive no -- sh -c 'echo ran; exit 7'")).toBe("ran\n7\n");
    expect(run("lazarus run m2 -d -- true")).toBe("m2\n0\n");
    expect(run("lazarus checkpoint nosuch")).toBe("6\n");
  });
});

describe("color", () => {
  it("is off in a pipe, on with FORCE_COLOR, and off with NO_COLOR", () => {
    world.run(["init", "m1"]);
    const scan = (env: Record<string, string | undefined>) =>
      world.run(["scan"], { env }).stdout.includes("\x1b[");
    expect(scan({ NO_COLOR: undefined })).toBe(false);
    expect(scan({ NO_COLOR: undefined, FORCE_COLOR: "1" })).toBe(true);
    expect(scan({ NO_COLOR: "1", FORCE_COLOR: "1" })).toBe(false);
  });

  it("is decided per stream: a redirected stderr has none", (context) => {
    const script = "/usr/bin/script";
    if (!existsSync(script)) context.skip("script(1), which makes a terminal, is not installed");
    world.run(["init", "m1"]);
    const inTerminal = (line: string) =>
      spawnSync(script, ["-qec", line, "/dev/null"], {
        cwd: world.cwd,
        env: { ...world.env, NO_COLOR: "", TERM: "xterm" },
        encoding: "utf8",
      }).stdout;
    expect(inTerminal("lazarus scan")).toContain("\x1b[32mhealthy");
    expect(inTerminal("lazarus nosuch")).toContain("\x1b[31merror");
    expect(inTerminal("lazarus nosuch 2> err; cat err")).toContain("error: unknown command");
    expect(inTerminal("lazarus heartbeat m1")).toContain("m1 is alive: alive");
  });
});

describe("completions", () => {
  /** The completions that bash offers after these words. */
  const offered = (...words: string[]): string[] => {
    const quoted = words.map((word) => `'${word}'`).join(" ");
    const { stdout, stderr } = bash(
      `eval "$(lazarus completion bash)"; COMP_WORDS=(lazarus ${quoted}); COMP_CWORD=${words.length}; _lazarus; printf '%s\\n' "\${COMPREPLY[@]}"`,
    );
    expect(stderr).toBe("");
    return stdout.split("\n").filter((word) => word !== "");
  };

  it("in bash offer commands, subcommands, options and missions", () => {
    world.run(["init", "tidy-inbox"]);
    world.run(["init", "fix-login"]);
    expect(offered("")).toEqual(
      expect.arrayContaining(["init", "heartbeat", "scan", "job", "events", "doctor"]),
    );
    expect(offered("sc")).toEqual(["scan"]);
    expect(offered("job", "")).toEqual(["beat", "check"]);
    expect(offered("heartbeat", "")).toEqual(["fix-login", "tidy-inbox"]);
    expect(offered("heartbeat", "t")).toEqual(["tidy-inbox"]);
    expect(offered("heartbeat", "tidy-inbox", "--st")).toEqual(["--status"]);
    expect(offered("scan", "--")).toEqual(
      expect.arrayContaining(["--watch", "--interval", "--check", "--json", "--config", "--quiet", "--help"]),
    );
    expect(offered("nosuch", "")).toEqual([]);
  });

  it("do not offer hidden commands and work with a broken config", () => {
    expect(offered("comp")).toEqual(["completion"]);
    world.write("cwd/lazarus.json", "{");
    expect(offered("sc")).toEqual(["scan"]);
    expect(offered("heartbeat", "x")).toEqual([]);
  });

  it("exist for bash, zsh and fish, and as JSON", () => {
    for (const shell of ["bash", "zsh", "fish"]) {
      expect(world.run(["completion", shell]).stdout).toContain("lazarus complete --");
      expect(world.json(`completion ${shell} --json`)).toMatchObject({
        schema: "lazarus.completion/1",
        shell,
      });
    }
    expect(world.json("complete --json -- sc")).toEqual({
      schema: "lazarus.complete/1",
      candidates: ["scan"],
    });
    expect(world.shell("lazarus completion bash | bash -n").exit).toBe(0);
  });
});

describe("every command", () => {
  it("with --json prints one document with a schema on stdout, even on failure", async () => {
    for (const line of [
      "init m1",
      "heartbeat m1",
      "scan",
      "job beat j1",
      "job check",
      "config",
      "doctor",
      "version",
      "completion bash",
      "heartbeat none",
      "nosuch",
      "scan --nosuch",
      "init ../x",
    ]) {
      const { stdout } = await world.call([...line.split(" "), "--json"]);
      expect(stdout.match(/\n/g), line).toHaveLength(1);
      expect(JSON.parse(stdout).schema, line).toMatch(/^lazarus\.[a-z-]+\/\d+$/);
    }
  });
});
