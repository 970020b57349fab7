// Runs checkpoints in a process that is killed, and checks what must hold afterwards: acknowledged checkpoints exist, the
// vault passes a deep verification, at most one further checkpoint is listed, and the next one succeeds (INV-1, INV-2).
import { spawn } from "node:child_process";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect } from "vitest";
import { ARM, bundleProgram } from "../bundle.ts";
import { COMPILE_CACHE } from "../cli/hermetic.ts";
import { type Lab, removeTree } from "../snapshot/lab.ts";
import { listTree } from "../snapshot/list-tree.ts";
import { CRASH_DOCUMENT } from "./checkpoint-settings.ts";

export interface Ending {
  readonly signal: string | null;
  readonly saved: readonly string[];
  readonly finished: boolean;
}

export interface Victim {
  readonly home: string;
  readonly rounds: number;
  readonly first?: number;
  /** Name of a crash point, with #nth. */
  readonly crashAt?: string;
  /** Killed this long after it started to work. */
  readonly killAfterMs?: number;
}

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));

export async function runVictim(victim: Victim): Promise<Ending> {
  const program = await bundleProgram(here("checkpoint-victim.ts"));
  const args = [victim.home, String(victim.rounds), String(victim.first ?? 0)];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, ["--import", ARM, program, ...args], {
      env: {
        PATH: process.env.PATH,
        ...COMPILE_CACHE,
        ...(victim.crashAt === undefined ? {} : { LAZARUS_CRASH_AT: victim.crashAt }),
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    let stdout = "";
    child.stdout.on("data", (data) => {
      if (stdout === "" && victim.killAfterMs !== undefined)
        setTimeout(() => child.kill("SIGKILL"), victim.killAfterMs);
      stdout += data;
    });
    child.on("error", reject);
    child.on("close", (_, signal) =>
      resolve({
        signal,
        saved: [...stdout.matchAll(/^saved (\S+)$/gm)].map(([, id = ""]) => id),
        finished: stdout.includes("finished"),
      }),
    );
  });
}

export async function checkVault(lab: Lab, before: readonly string[], { saved }: Ending): Promise<void> {
  const listed = lab.context.vault.list().map(({ id }) => id);
  const known = [...before, ...saved];
  const expected = known.slice(-CRASH_DOCUMENT.retention.keep_last + 1);
  expect(listed).toEqual(expect.arrayContaining(expected));
  expect(
    listed.filter((id) => !known.includes(id)).length,
    "at most the one in progress",
  ).toBeLessThanOrEqual(1);
  await lab.verify();
  const { ref, flaws } = await lab.checkpoint();
  expect(flaws).toEqual([]);
  await lab.verify();
  const directory = await lab.restored(ref.id);
  expect(listTree(directory)).toEqual(listTree(lab.cell));
  removeTree(directory);
}

export const SOURCES = join(here("../../src/snapshot"));
