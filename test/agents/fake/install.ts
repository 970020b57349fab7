// Puts fake agents on a PATH for a test, and reads the traces that they leave.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { shellWord } from "../../../src/platform/shell-word.ts";

const MAIN = new URL("main.ts", import.meta.url).pathname;

/** A directory with executables of these names; put it first in PATH. `process.execPath` runs them. */
export function installFakes(directory: string, ...names: readonly string[]): string {
  mkdirSync(directory, { recursive: true });
  for (const name of names) {
    const path = join(directory, name);
    const words = [process.execPath, "--disable-warning=ExperimentalWarning", MAIN, name];
    writeFileSync(path, `#!/bin/sh\nexec ${words.map(shellWord).join(" ")} "$@"\n`);
    chmodSync(path, 0o755);
  }
  return directory;
}

export interface FakeRequest {
  readonly epoch: string | null;
  readonly session: string;
  readonly messages: number;
  /** The chapter that the conversation calls for, or "done". */
  readonly next: string;
  readonly prompt: string;
}

/** What the fake model was asked, oldest first. `directory` is FAKE_DIRECTORY. */
export function readRequests(directory: string): FakeRequest[] {
  const path = join(directory, "requests.jsonl");
  if (!existsSync(path)) return [];
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line) as FakeRequest);
}

/** How often each step had its effect: { "1": 1, … }. */
export function countEffects(outbox: string): Record<string, number> {
  const counts: Record<string, number> = {};
  const text = existsSync(outbox) ? readFileSync(outbox, "utf8") : "";
  for (const step of text.split("\n").filter((line) => line !== "")) counts[step] = (counts[step] ?? 0) + 1;
  return counts;
}
