import { mkdtempSync, rmSync, type watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { loadConfig } from "../../cell/config.ts";
import { systemMachine } from "../../platform/machine.ts";
import { createSystemError } from "../../testing/index.ts";
import { wakePit, watchWakeFiles } from "./wake-file.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-wake-"));
});
afterEach(() => rmSync(home, { recursive: true }));
const config = () => loadConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false }).config;
const never = (reason: string) => expect.unreachable(reason);

it("reports the mission's name and ignores other files", async () => {
  const woken: string[] = [];
  using _ = watchWakeFiles(config(), (mission) => woken.push(mission), never);
  wakePit(systemMachine, config(), "not a mission");
  wakePit(systemMachine, config(), "m1");
  await vi.waitFor(() => expect(woken).toContain("m1"), { timeout: 60_000 });
  expect(new Set(woken)).toEqual(new Set(["m1"]));
});

it("reports why the system refuses a watch", () => {
  const refusals: string[] = [];
  const failingWatch = (() => {
    throw createSystemError("EMFILE", { syscall: "watch", path: home });
  }) as unknown as typeof watch;
  using _ = watchWakeFiles(config(), never, (reason) => refusals.push(reason), failingWatch);
  expect(refusals).toEqual([expect.stringMatching(/cannot watch \S+run\/bell \(EMFILE\)/)]);
});
