import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { chooseLauncher } from "./launcher.ts";

const isPerl = (foreground: boolean, names: readonly string[]) =>
  chooseLauncher(foreground, names).program.endsWith("perl");

describe("the launcher of a keeper", () => {
  it("is Node in the foreground, and for an agent whose environment changes Perl", () => {
    expect(isPerl(true, ["PATH"])).toBe(false);
    expect(isPerl(false, ["PATH", "PERL5OPT"])).toBe(false);
  });

  it("is Perl otherwise, and changes neither arguments, environment nor signals", ({ skip }) => {
    const { program, args, env } = chooseLauncher(false, ["PATH"]);
    if (!program.endsWith("perl")) skip(`no Perl for ${process.platform} on ${process.arch}`);
    const script = 'printf "<%s>" "$@"; env | grep -c PERL; grep -c "^SigIgn:.*[1-9a-f]" /proc/self/status';
    const words = ["", "a b", "$HOME", "\u00e9", "two\nlines"];
    const { stdout, stderr } = spawnSync(program, [...args, "-c", script, "sh", ...words], {
      encoding: "utf8",
      env: { PATH: process.env.PATH, LC_ALL: "xx_XX.UTF-8", ...env },
    });
    expect(stderr).not.toContain("perl");
    expect(stdout).toBe(`${words.map((word) => `<${word}>`).join("")}0\n0\n`);
  });

  it("makes the keeper a child subreaper", ({ skip }) => {
    const { program, args, env } = chooseLauncher(false, ["PATH"]);
    if (!program.endsWith("perl") || !existsSync("/proc/self/task"))
      skip(`no Perl for ${process.platform} on ${process.arch}`);
    const script =
      "p=$(sh -c 'sleep 600 >/dev/null & echo $!'); cut -d' ' -f4 /proc/$p/stat; echo $$; kill $p";
    const { stdout } = spawnSync(program, [...args, "-c", script], {
      encoding: "utf8",
      env: { PATH: process.env.PATH, ...env },
    });
    const [parent, keeper] = stdout.trim().split("\n");
    expect(parent).toBe(keeper);
  });
});
