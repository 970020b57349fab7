// docs/cells.md, "Configuration": defaults, lookup, LAZARUS_HOME, and a broken file as a clear error.
import {
  chmodSync,
  chownSync,
  mkdirSync,
  mkdtempSync,
  realpathSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LazarusError } from "../platform/errors.ts";
import { systemMachine } from "../platform/machine.ts";
import {
  type ConfigKey,
  isConfigKey,
  loadConfig,
  resolveConfig,
  type Surroundings,
  trustFilePath,
} from "./config.ts";
import { distrustConfig, trustConfig } from "./config-trust.ts";

let directory: string;
let cwd: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-config-"));
  cwd = join(directory, "cwd");
  mkdirSync(cwd);
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

const SIX = ["meta", "config", "state", "logs", "artifacts", "worktree"];

function surroundings(env: Record<string, string> = {}, isRoot = false): Surroundings {
  return { env: { HOME: join(directory, "user"), ...env }, cwd, isRoot };
}

function write(path: string, value: unknown): string {
  const file = join(directory, path);
  mkdirSync(join(file, ".."), { recursive: true });
  writeFileSync(file, typeof value === "string" ? value : JSON.stringify(value));
  return file;
}

describe("defaults", () => {
  it("for root are /var/missions, lazarus_pit, 60, 180, the six subdirectories and state/heartbeat.json", () => {
    expect(resolveConfig(surroundings({}, true), undefined, {}).config).toEqual({
      missions_root: "/var/missions",
      heartbeat_job: "lazarus_pit",
      heartbeat_interval_seconds: 60,
      stale_after_seconds: 180,
      required_subdirs: SIX,
      heartbeat_file: "state/heartbeat.json",
      vault_root: "/var/lib/lazarus/vault",
      heartbeat_dir: "/var/lib/lazarus/heartbeats",
      registry_file: "/var/lib/lazarus/registry.db",
      run_dir: "/var/lib/lazarus/run",
    });
  });

  it("for other users are in the XDG data directory", () => {
    expect(resolveConfig(surroundings(), undefined, {}).config.missions_root).toBe(
      join(directory, "user/.local/share/lazarus/missions"),
    );
    expect(resolveConfig(surroundings({ XDG_DATA_HOME: "/data" }), undefined, {}).config).toMatchObject({
      missions_root: "/data/lazarus/missions",
      registry_file: "/data/lazarus/registry.db",
    });
  });

  it("are what LAZARUS_HOME moves below one directory: missions/ vault/ heartbeats/ registry.db run/", () => {
    for (const isRoot of [true, false]) {
      const { config, origins } = resolveConfig(
        surroundings({ LAZARUS_HOME: "/try" }, isRoot),
        undefined,
        {},
      );
      expect(config).toMatchObject({
        missions_root: "/try/missions",
        vault_root: "/try/vault",
        heartbeat_dir: "/try/heartbeats",
        registry_file: "/try/registry.db",
        run_dir: "/try/run",
      });
      expect(origins.missions_root).toBe("LAZARUS_HOME");
      expect(origins.heartbeat_job).toBe("default");
    }
  });

  it("apply when LAZARUS_HOME is empty", () => {
    expect(resolveConfig(surroundings({ LAZARUS_HOME: "" }, true), undefined, {}).config.missions_root).toBe(
      "/var/missions",
    );
  });
});

describe("a config file", () => {
  it("overrides key by key, and the origin of every value is recorded", () => {
    const file = write("c.json", { stale_after_seconds: 5, missions_root: "/m" });
    const { config, origins } = loadConfig(surroundings({}, true), file);
    expect(config).toMatchObject({
      stale_after_seconds: 5,
      missions_root: "/m",
      heartbeat_interval_seconds: 60,
    });
    expect(origins).toMatchObject({ stale_after_seconds: file, heartbeat_interval_seconds: "default" });
  });

  it("with an empty required_subdirs uses the six defaults", () => {
    const { config, origins } = resolveConfig(surroundings(), "c.json", { required_subdirs: [] });
    expect(config.required_subdirs).toEqual(SIX);
    expect(origins.required_subdirs).toBe("default");
  });

  it("may name other sub-directories and another heartbeat file", () => {
    const document = { required_subdirs: ["a"], heartbeat_file: "pulse/now.json" };
    expect(resolveConfig(surroundings(), "c.json", document).config).toMatchObject(document);
  });

  it("is looked up in --config, LAZARUS_CONFIG, ./lazarus.json, the user's XDG config, in that order", () => {
    const user = write("user/.config/lazarus/config.json", { heartbeat_job: "user" });
    const here = surroundings();
    expect(loadConfig(here).file).toBe(user);
    const local = write("cwd/lazarus.json", { heartbeat_job: "local" });
    expect(loadConfig(here).file).toBe(local);
    const named = write("env.json", { heartbeat_job: "env" });
    const env = surroundings({ LAZARUS_CONFIG: named });
    expect(loadConfig(env).config.heartbeat_job).toBe("env");
    const explicit = write("explicit.json", { heartbeat_job: "explicit" });
    expect(loadConfig(env, explicit).config.heartbeat_job).toBe("explicit");
  });

  it("of the user is below XDG_CONFIG_HOME when that is set", () => {
    const file = write("xdg/lazarus/config.json", { heartbeat_job: "xdg" });
    expect(loadConfig(surroundings({ XDG_CONFIG_HOME: join(directory, "xdg") })).file).toBe(file);
  });

  it("below LAZARUS_HOME replaces the user's own, so that a trial is isolated", () => {
    write("user/.config/lazarus/config.json", { heartbeat_job: "user" });
    const env = surroundings({ LAZARUS_HOME: join(directory, "home") });
    expect(loadConfig(env).file).toBeUndefined();
    const file = write("home/config.json", { heartbeat_job: "home" });
    expect(loadConfig(env).file).toBe(file);
  });

  it("cannot override a path set by LAZARUS_HOME, and a warning says so", () => {
    const { config, warnings } = resolveConfig(surroundings({ LAZARUS_HOME: "/try" }), "/c.json", {
      missions_root: "/elsewhere",
    });
    expect(config.missions_root).toBe("/try/missions");
    expect(warnings).toEqual(["/c.json: missions_root is ignored because LAZARUS_HOME is set to /try"]);
  });

  it("may be a symbolic link, for example into a repository of settings", () => {
    const real = write("dotfiles/lazarus.json", { heartbeat_job: "linked" });
    symlinkSync(real, join(cwd, "lazarus.json"));
    expect(loadConfig(surroundings()).config.heartbeat_job).toBe("linked");
  });

  it("keeps sections of other modules, and warns about unknown keys", () => {
    const document = JSON.parse('{"retention":{"keep":3},"stale_afer_seconds":5,"__proto__":{"a":1}}');
    const effective = resolveConfig(surroundings(), "/c.json", document);
    expect(effective.document.retention).toEqual({ keep: 3 });
    expect(effective.warnings).toEqual([
      '/c.json: unknown key "stale_afer_seconds" is not used',
      '/c.json: unknown key "__proto__" is not used',
    ]);
  });
});

describe("a lazarus.json in the current directory", () => {
  const LOCAL = { heartbeat_job: "local" };
  const me = process.getuid!();
  const look = (more: Partial<Surroundings> = {}) => loadConfig({ ...surroundings(), cwd, ...more });
  const expectIgnored = (reason: RegExp, more?: Partial<Surroundings>) => {
    const { file, ignored, config } = look(more);
    expect(file).toBeUndefined();
    expect(config.heartbeat_job).toBe("lazarus_pit");
    expect(ignored).toMatch(reason);
    expect(ignored).toContain("if its content is right: lazarus config trust, or name it with --config");
  };
  /** As if another user owned the path: root changes its owner, other users pretend to be another user. */
  const pretendForeign = (path: string): Partial<Surroundings> => {
    if (me !== 0) return { userId: me + 1 };
    chownSync(path, 4242, 4242);
    return {};
  };

  it("that the user wrote is read, even if every user has a group", () => {
    const file = write("cwd/lazarus.json", LOCAL);
    expect(look()).toMatchObject({ file });
    expect(look().ignored).toBeUndefined();
    for (const path of [file, cwd]) chmodSync(path, statSync(path).mode | 0o020);
    if (process.getgid!() === me) expect(look().file).toBe(file);
  });

  it("of another user, or in the directory of another user, is ignored", () => {
    const file = write("cwd/lazarus.json", LOCAL);
    expectIgnored(/belongs to another user/, pretendForeign(file));
    rmSync(file);
    write("cwd/lazarus.json", LOCAL);
    expectIgnored(/belongs to another user/, pretendForeign(cwd));
  });

  it("that others can write is ignored", () => {
    const file = write("cwd/lazarus.json", LOCAL);
    chmodSync(file, 0o646);
    expectIgnored(/other users can write to .*cwd\/lazarus\.json/);
    chmodSync(file, 0o644);
    chmodSync(cwd, 0o1777);
    expectIgnored(/other users can write to .*cwd;/);
    chmodSync(cwd, 0o755);
    expect(look().file).toBe(file);
    rmSync(file);
    const elsewhere = write("open/lazarus.json", LOCAL);
    chmodSync(join(directory, "open"), 0o777);
    symlinkSync(elsewhere, file);
    expectIgnored(/other users can write to .*open;/);
  });

  it("in a cell is ignored: of this home, of another one, and through a link", () => {
    const root = look().config.missions_root;
    cwd = join(root, "m1", "worktree", "deep");
    mkdirSync(cwd, { recursive: true });
    writeFileSync(join(cwd, "lazarus.json"), JSON.stringify(LOCAL));
    expectIgnored(/it is in a cell below .*missions, where agents can write/);
    const link = join(directory, "link");
    symlinkSync(cwd, link);
    expectIgnored(/it is in a cell below/, { cwd: link });

    for (const name of ["config/cell.json", "meta/mission.json"]) write(`other-home/missions/m2/${name}`, {});
    cwd = join(directory, "other-home/missions/m2/artifacts");
    write("other-home/missions/m2/artifacts/lazarus.json", LOCAL);
    expectIgnored(/it is in the cell .*m2, where an agent can write/);
  });

  it("where an agent works is ignored", () => {
    const { run_dir: runDir } = look().config;
    mkdirSync(join(runDir, "agents", "m1"), { recursive: true });
    writeFileSync(join(runDir, "agents", "m1", "record.json"), JSON.stringify({ cwd: directory }));
    write("cwd/lazarus.json", LOCAL);
    expectIgnored(/the agent of m1 works in this directory/);
  });

  it("is read once it is trusted, until it changes; a file that is named is always read", () => {
    const file = write("cwd/lazarus.json", LOCAL);
    chmodSync(cwd, 0o777);
    expectIgnored(/other users can write/);
    expect(loadConfig(surroundings(), file).file).toBe(file);
    expect(loadConfig(surroundings({ LAZARUS_CONFIG: file })).file).toBe(file);
    const trustFile = trustFilePath(surroundings());
    expect(trustConfig(systemMachine, trustFile, file)).toBe(realpathSync(file));
    expect(look()).toMatchObject({ file });
    expect(statSync(trustFile).mode & 0o777).toBe(0o600);
    writeFileSync(file, JSON.stringify({ heartbeat_job: "changed" }));
    expectIgnored(/it has changed since it was trusted, and other users can write/);
    writeFileSync(file, JSON.stringify(LOCAL));
    expect(look()).toMatchObject({ file });
    expect(distrustConfig(systemMachine, trustFile, file)).toBe(true);
    expect(distrustConfig(systemMachine, trustFile, file)).toBe(false);
    expectIgnored(/other users can write/);
  });
});

describe("a broken config is a clear error with file, key and expected type, exit 78:", () => {
  const failure = (look: () => unknown): LazarusError => {
    try {
      look();
    } catch (error) {
      if (error instanceof LazarusError) return error;
      throw error;
    }
    throw new Error("nothing was refused");
  };

  it.each<[ConfigKey, unknown, string]>([
    ["missions_root", 5, "number 5; expected a path (string)"],
    ["missions_root", "", 'string ""; expected a path (string)'],
    ["missions_root", "a\0b", 'string "a\\u0000b"; expected a path (string)'],
    [
      "heartbeat_job",
      "../x",
      "string \"../x\"; expected a name of letters, digits, '.', '_' and '-' (string)",
    ],
    ["heartbeat_interval_seconds", "60", 'string "60"; expected a number of seconds above 0'],
    ["stale_after_seconds", 0, "number 0; expected a number of seconds above 0"],
    ["stale_after_seconds", null, "null; expected a number of seconds above 0"],
    ["stale_after_seconds", true, "boolean true; expected a number of seconds above 0"],
    ["required_subdirs", "meta", "string \"meta\"; expected a list of directory names (strings without '/')"],
    ["required_subdirs", ["a/b"], "a list; expected a list of directory names (strings without '/')"],
    ["required_subdirs", [".."], "a list; expected a list of directory names (strings without '/')"],
    ["heartbeat_file", "../out", "string \"../out\"; expected a path below the cell (string without '..')"],
    ["heartbeat_file", "/etc/x", "string \"/etc/x\"; expected a path below the cell (string without '..')"],
    ["vault_root", {}, "object {}; expected a path (string)"],
  ])("%s: %j", (key, value, words) => {
    const error = failure(() => resolveConfig(surroundings(), "/etc/c.json", { [key]: value }));
    expect(error.message).toBe(`/etc/c.json: ${key} is ${words}`);
    expect(error).toMatchObject({
      code: "CONFIG_INVALID",
      exitCode: 78,
      details: { file: "/etc/c.json", key },
    });
    expect(error.hint).toBeTruthy();
  });

  it.each([
    ["not JSON", "{", "not JSON; expected a JSON object"],
    ["a list", "[]", "JSON, but not an object; expected a JSON object"],
    ["binary", "\0\x01\x02", "not JSON; expected a JSON object"],
    ["empty", "", "not JSON; expected a JSON object"],
  ])("a file that is %s", (_, content, words) => {
    const file = write("c.json", content);
    const error = failure(() => loadConfig(surroundings(), file));
    expect(error.message).toBe(`${file}: ${words}`);
    expect(error.exitCode).toBe(78);
  });

  it("a directory", () => {
    const error = failure(() => loadConfig(surroundings(), cwd));
    expect(error.message).toBe(`${cwd}: a directory, not a file; expected a JSON object`);
    expect(error.exitCode).toBe(78);
  });

  it("a file that was named explicitly and does not exist", () => {
    for (const look of [
      () => loadConfig(surroundings(), "none.json"),
      () => loadConfig(surroundings({ LAZARUS_CONFIG: "none.json" })),
    ]) {
      expect(failure(look)).toMatchObject({ code: "CONFIG_MISSING", exitCode: 78 });
    }
  });
});

it("any JSON document either gives a complete config of the right types or exit 78", () => {
  const key = fc.constantFrom(
    "missions_root",
    "heartbeat_job",
    "stale_after_seconds",
    "required_subdirs",
    "heartbeat_file",
    "x",
  );
  fc.assert(
    fc.property(fc.dictionary(key, fc.jsonValue()), (document) => {
      try {
        const { config, origins } = resolveConfig(surroundings(), "/c.json", document as never);
        expect(Object.keys(origins).every(isConfigKey)).toBe(true);
        expect(config.missions_root.startsWith("/")).toBe(true);
        expect(config.stale_after_seconds).toBeGreaterThan(0);
        expect(config.required_subdirs.length).toBeGreaterThan(0);
        expect(config.heartbeat_file.split("/")).not.toContain("..");
      } catch (error) {
        expect(error).toMatchObject({ code: "CONFIG_INVALID", exitCode: 78 });
      }
    }),
  );
});
