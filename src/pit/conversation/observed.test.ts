import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, it } from "vitest";
import { unsentNoteFile } from "../../agents/session.ts";
import { agentPaths } from "../../cell/agent-paths.ts";
import { loadConfig } from "../../cell/config.ts";
import type { MissionRecord } from "../record/record.ts";
import { waitsForUser } from "./observed.ts";

it("an agent waits for its user once it has refused the note", () => {
  const home = mkdtempSync(join(tmpdir(), "lazarus-observed-"));
  try {
    const { config } = loadConfig({ env: { LAZARUS_HOME: home }, cwd: home, isRoot: false });
    const { directory } = agentPaths(config, "m1");
    mkdirSync(directory, { recursive: true });
    const life = { epoch: 2, started_ms: 0, conversation: { adapter: "opencode", turn: 1, hooks: true } };
    const record = { mission: "m1", life } as unknown as MissionRecord;
    expect(waitsForUser(config, record)).toBe(false);
    writeFileSync(unsentNoteFile(directory), "You were interrupted.");
    expect(waitsForUser(config, record)).toBe(true);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
});
