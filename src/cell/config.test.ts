// Spec "Config": defaults, lookup, LAZARUS_HOME, and a broken file as a clear error.
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { LazarusError } from "../platform/errors.ts";
import { type ConfigKey, isConfigKey, loadConfig, resolveConfig, type Surroundings } from "./config.ts";

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
  it("overrides key by key, and the origin of every value is known", () => {
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
