// External programs used by tests. When one is missing, its tests are skipped with a message.
import { spawnSync } from "node:child_process";

const said = new Set<string>();

/** Whether a program is here. `skipped` names the tests that are not run without it. */
export function isHere(program: string, skipped: string): boolean {
  const here = spawnSync(program, ["--version"], { stdio: "ignore" }).status === 0;
  if (!here) saySkipped(skipped, `${program} is not installed`);
  return here;
}

export function saySkipped(skipped: string, why: string): void {
  const line = `skipped: ${skipped}: ${why}\n`;
  if (!said.has(line)) process.stderr.write(line);
  said.add(line);
}
