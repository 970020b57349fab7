// External programs used by tests. When one is missing, its tests are skipped with a message.
import { spawnSync } from "node:child_process";

const reported = new Set<string>();

/** Whether a program is installed. `skipped` describes the tests that are skipped without it. */
export function isInstalled(program: string, skipped: string): boolean {
  const installed = spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
  if (!installed) reportSkipped(skipped, `${program} is not installed`);
  return installed;
}

export function reportSkipped(skipped: string, why: string): void {
  const line = `skipped: ${skipped}: ${why}\n`;
  if (!reported.has(line)) process.stderr.write(line);
  reported.add(line);
}
