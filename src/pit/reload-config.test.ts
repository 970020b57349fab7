import { describe, expect, it } from "vitest";
import { type EffectiveConfig, resolveConfig } from "../cell/config.ts";
import type { JsonObject } from "../platform/json-file.ts";
import { createReloadableConfig } from "./reload-config.ts";

const FILE = "/home/config.json";
const surroundings = { env: { LAZARUS_HOME: "/home" }, cwd: "/", isRoot: false };
const resolve = (document: JsonObject, file: string | undefined = FILE) =>
  resolveConfig(surroundings, file, document);

function open(first: EffectiveConfig) {
  const log: string[] = [];
  let next: () => EffectiveConfig = () => first;
  const config = createReloadableConfig(
    first,
    () => next(),
    (line) => log.push(line),
  );
  return {
    config,
    log,
    reload(read: () => EffectiveConfig) {
      next = read;
      return config.reload();
    },
  };
}

describe("the settings of a running pit", () => {
  it("follow their file, and do nothing while it is the same", () => {
    const { config, log, reload } = open(resolve({}));
    expect(reload(() => resolve({}))).toBe(false);
    expect(reload(() => resolve({ snapshot: { exclude: ["tmp"] } }))).toBe(true);
    expect(config.effective.document).toEqual({ snapshot: { exclude: ["tmp"] } });
    expect(reload(() => resolve({ snapshot: { exclude: ["tmp"] } }))).toBe(false);
    expect(log).toEqual(["the settings have changed and are in effect"]);
  });

  it("do not change while the file has a wrong value, cannot be read, is gone or not trusted, which is reported once", () => {
    const { config, log, reload } = open(resolve({ snapshot: { exclude: ["a"] } }));
    const unreadable = () => {
      throw new Error("cannot be read");
    };
    const bad = [
      () => resolve({ snapshot: { exclude: 7 } }),
      unreadable,
      () => resolveConfig(surroundings, undefined, {}),
      () => ({ ...resolve({}, "/other"), ignored: "not trusted" }),
    ];
    for (const read of bad) for (const _ of [1, 2]) expect(reload(read)).toBe(false);
    expect(config.effective.document).toEqual({ snapshot: { exclude: ["a"] } });
    expect(log).toEqual([
      expect.stringContaining("snapshot.exclude"),
      expect.stringContaining("cannot be read"),
      expect.stringContaining(`${FILE} is gone`),
      expect.stringContaining("not trusted"),
    ]);
    expect(reload(() => resolve({ snapshot: { exclude: ["b"] } }))).toBe(true);
    expect(config.effective.document).toEqual({ snapshot: { exclude: ["b"] } });
  });

  it("keep paths, intervals and services, and name what needs a restart", () => {
    const { config, log, reload } = open(resolve({ pit: { quiet_seconds: 1 } }));
    const changed = { stale_after_seconds: 7, alerts: { command: "cat" }, pit: { http_port: 1 } };
    expect(reload(() => resolve(changed))).toBe(true);
    expect(config.effective.config.stale_after_seconds).not.toBe(7);
    expect(config.effective.document.pit).toEqual({ http_port: 1 });
    expect(log.at(-1)).toBe(
      "restart the pit to use the new values of stale_after_seconds, alerts, pit.http_port",
    );
  });

  it("come from a file that is created later", () => {
    const { reload } = open(resolveConfig(surroundings, undefined, {}));
    expect(reload(() => resolve({ snapshot: { exclude: ["a"] } }))).toBe(true);
  });
});
