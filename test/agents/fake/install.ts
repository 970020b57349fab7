// Puts fake agents on a PATH for a test, and reads the traces that they leave.
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { findAdapter } from "../../../src/agents/adapters.ts";
import { shellWord } from "../../../src/platform/shell-word.ts";
import { bundleProgram } from "../../bundle.ts";

const MAIN = await bundleProgram(join(import.meta.dirname, "main.ts"));

/** A directory with executables of these names; put it first in PATH. `process.execPath` runs them. */
export function installFakes(directory: string, ...names: readonly string[]): string {
  mkdirSync(directory, { recursive: true });
  for (const name of names) {
    const path = join(directory, name);
    // It may be running.
    if (existsSync(path)) continue;
    const words = [process.execPath, "--disable-warning=ExperimentalWarning", MAIN, name];
    writeFileSync(path, `#!/bin/sh\nexec ${words.map(shellWord).join(" ")} "$@"\n`);
    chmodSync(path, 0o755);
  }
  return directory;
}

/** For an agent whose hooks are not passed per run here, what `lazarus install` does. */
export function installHooks(name: string, home: string, program: readonly string[]): void {
  const { hooks } = findAdapter(name)!;
  const command = [...program, "hook", name, "--installed"];
  const perRun = hooks.perRun?.(command, join(home, "hooks"), {});
  if (perRun !== undefined && perRun.args.length + Object.keys(perRun.env).length > 0) return;
  for (const { path, mode, apply } of hooks.install({ cwd: home, home, env: {} }, command)) {
    mkdirSync(dirname(path), { recursive: true });
    const before = existsSync(path) ? readFileSync(path, "utf8") : null;
    const after = apply(before);
    if (after !== before) writeFileSync(path, after, { mode: mode ?? 0o600 });
  }
}

export interface FakeRequest {
  readonly epoch: string | null;
  readonly session: string;
  readonly messages: number;
  /** The chapter that the conversation calls for, or "done". */
  readonly next: string;
  readonly prompt: string;
}

/** Requests to the fake model, oldest first. `directory` is FAKE_DIRECTORY. */
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
