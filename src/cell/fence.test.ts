import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { resolveConfig } from "./config.ts";
import { agentDirectory, readEpoch, refuseFenced } from "./fence.ts";

const home = mkdtempSync(join(tmpdir(), "lazarus-fence-"));
afterEach(() => rmSync(home, { recursive: true, force: true }));
const { config } = resolveConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false }, undefined, {});

function setEpoch(text: string): void {
  mkdirSync(agentDirectory(config, "m1"), { recursive: true });
  writeFileSync(join(agentDirectory(config, "m1"), "epoch"), text);
}

const carrying = (epoch: string, mission = "m1") => ({ LAZARUS_EPOCH: epoch, LAZARUS_MISSION: mission });
const check = (env: Record<string, string>, mission?: string) => () =>
  refuseFenced(() => config, env, mission);

test("an agent of the current life may write", () => {
  setEpoch("3\n");
  expect(check(carrying("3"))).not.toThrow();
  expect(check(carrying("4"))).not.toThrow();
});

test("an agent of an earlier life is refused with exit code 7", () => {
  setEpoch("3\n");
  expect(check(carrying("2"))).toThrow(expect.objectContaining({ code: "EPOCH_FENCED", exitCode: 7 }));
});

test("callers without an epoch, or of another mission, are not checked", () => {
  setEpoch("3\n");
  expect(check({})).not.toThrow();
  expect(check(carrying("2"), "m2")).not.toThrow();
  expect(check({ LAZARUS_EPOCH: "nonsense", LAZARUS_MISSION: "m1" })).not.toThrow();
});

test("a mission without an epoch has 0, and so has one whose file is damaged", () => {
  expect(readEpoch(config, "m1")).toBe(0);
  setEpoch("garbage");
  expect(readEpoch(config, "m1")).toBe(0);
});
