import { mkdtempSync, rmSync, type watch } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { loadConfig } from "../../cell/config.ts";
import { systemMachine } from "../../platform/machine.ts";
import { createSystemError } from "../../testing/index.ts";
import { listen, ring } from "./wake-file.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "lazarus-bell-"));
});
afterEach(() => rmSync(home, { recursive: true }));
const config = () => loadConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false }).config;
const never = (reason: string) => expect.unreachable(reason);

it("is heard by name, and rubbish in its directory is not", async () => {
  const heard: string[] = [];
  using _ = listen(config(), (mission) => heard.push(mission), never);
  ring(systemMachine, config(), "not a mission");
  ring(systemMachine, config(), "m1");
  await vi.waitFor(() => expect(heard).toContain("m1"), { timeout: 60_000 });
  expect(new Set(heard)).toEqual(new Set(["m1"]));
});

it("is missed, not missing, where the system has no watch left", () => {
  const said: string[] = [];
  const none = (() => {
    throw createSystemError("EMFILE", { syscall: "watch", path: home });
  }) as unknown as typeof watch;
  using _ = listen(config(), never, (reason) => said.push(reason), none);
  expect(said).toEqual([expect.stringMatching(/run\/bell cannot be watched \(EMFILE\)/)]);
});
