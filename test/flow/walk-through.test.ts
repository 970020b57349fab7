// Runs the walkthrough of docs/flows.md in a shell.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { createWorld } from "../cli/hermetic.ts";

it("runs as documented", () => {
  const document = readFileSync(join(import.meta.dirname, "..", "..", "docs", "flows.md"), "utf8");
  const script = /## Walk-through[\s\S]*?```sh\n([\s\S]*?)```/.exec(document)![1]!;
  using world = createWorld();
  const { exit, stdout, stderr } = world.shell(`set -e\n${script}`);
  expect(exit, stderr).toBe(0);
  const lines = stdout.split("\n");
  expect(lines.filter((line) => line === "sent")).toHaveLength(3);
  expect(lines.filter((line) => line === "published")).toHaveLength(1);
  expect(lines).toContain("exit 7");
  expect(lines).toContain('  "currentStep": "write",');
  expect(lines.at(-2)).toBe("OK");
});
