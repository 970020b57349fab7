// Counters of real processes.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { readUsage } from "./usage.ts";

test.skipIf(process.platform !== "linux")(
  "writes of a process and of its children count, those of the keeper's helper do not (needs /proc)",
  async () => {
    const directory = mkdtempSync(join(tmpdir(), "lazarus-usage-"));
    // Each line is one command; the answer comes when it is done.
    const shell = 'while read -r line; do eval "$line"; echo done; done';
    const keeper = spawn("sh", ["-c", shell], {
      cwd: directory,
      stdio: ["pipe", "pipe", "inherit"],
      detached: true,
    });
    const helper = spawn("sleep", ["600"]);
    try {
      const at = (pid: number) => ({ pid, startTime: "1", bootId: "boot" });
      const life = { keeper: at(keeper.pid!), agent: at(keeper.pid!), helper: at(helper.pid!) };
      const command = async (line: string) => {
        keeper.stdin.write(`${line}\n`);
        await once(keeper.stdout, "data");
        return readUsage(life)!;
      };
      const idle = await command(":");
      const child = await command("sh -c 'echo 12345678 > file'");
      expect(child.writtenBytes).toBeGreaterThanOrEqual(idle.writtenBytes + 9);
      await command("sh -c 'echo 12345678 > other; exec sleep 600' &");
      await expect
        .poll(() => readUsage(life)!.writtenBytes, { timeout: 60_000 })
        .toBeGreaterThanOrEqual(child.writtenBytes + 9);
      expect(readUsage({ ...life, helper: at(keeper.pid!) })).toEqual({ cpuMs: 0, writtenBytes: 0 });
    } finally {
      // With everything in its process group.
      process.kill(-keeper.pid!, "SIGKILL");
      helper.kill("SIGKILL");
      rmSync(directory, { recursive: true });
    }
  },
);
