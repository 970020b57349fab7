import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { systemDisk } from "../platform/disk.ts";
import { readPlace, writePlace } from "./place.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "place-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

test("keeps the variables that name a path, and no key", () => {
  const env = { CLAUDE_CONFIG_DIR: "/data/claude", ANTHROPIC_API_KEY: "sk-ant-1", UNSET: undefined };
  writePlace({ disk: systemDisk }, directory, { cwd: "/w", home: "/home/a", env });
  expect(readPlace(directory)).toEqual({
    cwd: "/w",
    home: "/home/a",
    env: { CLAUDE_CONFIG_DIR: "/data/claude" },
  });
});

test("a place that was never written, or is damaged, is unknown", () => {
  expect(readPlace(directory)).toBeUndefined();
  writeFileSync(join(directory, "place.json"), JSON.stringify({ cwd: "relative", home: "/", env: {} }));
  expect(readPlace(directory)).toBeUndefined();
});
