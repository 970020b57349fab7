// Exports, index repairs and pins are killed with SIGKILL at every crash point and succeed when run again. Also checks that
// a kill loop covers every crash point of the snapshot module.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { systemMachine } from "../../src/platform/machine.ts";
import { verifyVault } from "../../src/snapshot/operations/verify.ts";
import { listCrashPoints } from "../../src/testing/crash-points.ts";
import {
  BASE,
  fixtureContext,
  initializedContext,
  makeLayer,
  publishCheckpoint,
  seededMachine,
} from "../snapshot/hand-made.ts";
import { runVictim, withCopy } from "./kill.ts";

const names = listCrashPoints(fileURLToPath(new URL("../../src", import.meta.url))).map(({ name }) => name);
const withPrefix = (...prefixes: string[]) =>
  names.filter((name) => prefixes.some((prefix) => name.startsWith(prefix)));
const DURABLE = ["durable.temporary.written", "durable.replace.renamed"];

let home: string;
let ids: string[];

beforeAll(async () => {
  home = mkdtempSync(join(tmpdir(), "lazarus-rest-kill-"));
  const machine = seededMachine();
  const context = await initializedContext(machine, home);
  const base = makeLayer(context, BASE);
  publishCheckpoint(context, [base], { pinned: true });
  await machine.clock.advance(60_000);
  publishCheckpoint(context, [base, makeLayer(context, [{ path: "worktree/a.txt", content: "2" }])]);
  ids = context.vault.list().map(({ id }) => id);
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Kills the operation at the point, then runs it again to completion. */
async function killAndRepeat(copy: string, point: string, args: readonly string[]): Promise<void> {
  const killed = await runVictim(args, `${point}#1`);
  expect(killed.signal, `${point} is never reached: ${killed.stderr}`).toBe("SIGKILL");
  const again = await runVictim(args, "nowhere");
  expect(again, again.stderr).toMatchObject({ code: 0, stdout: "done\n" });
  const { vault } = fixtureContext(systemMachine, copy);
  expect((await verifyVault(vault, { deep: true })).findings).toEqual([]);
  expect(vault.list().map(({ id }) => id)).toEqual(ids);
}

describe.concurrent("killed with SIGKILL and run again", () => {
  for (const point of withPrefix("snapshot.export.")) {
    it(`an export, at ${point}: no partial archive under its name, then a complete one`, async () => {
      await withCopy(home, async (copy) => {
        const file = join(copy, "m.tar.gz");
        const killed = await runVictim(["export", copy, file], `${point}#1`);
        expect(killed.signal).toBe("SIGKILL");
        expect(existsSync(file)).toBe(false);
        await runVictim(["export", copy, file], "nowhere");
        expect(readFileSync(file).subarray(0, 2)).toEqual(Buffer.of(0x1f, 0x8b));
      });
    });
  }

  for (const point of [...withPrefix("snapshot.repair.", "snapshot.publish."), ...DURABLE]) {
    it(`a repair of the index, at ${point}`, async () => {
      await withCopy(home, async (copy) => {
        const { vault } = fixtureContext(systemMachine, copy);
        const index = join(vault.root, "index.json");
        writeFileSync(index, readFileSync(index, "utf8").replace(/checksum":"./, 'checksum":"x'));
        await killAndRepeat(copy, point, ["repair", copy]);
        expect(vault.list()[0]!.pinned).toBe(true);
        const kept = readdirSync(join(vault.root, "lazarus")).filter((name) =>
          name.startsWith("index-damaged"),
        );
        expect(kept.length).toBeGreaterThan(0);
      });
    });
  }

  for (const point of [...withPrefix("snapshot.publish."), ...DURABLE]) {
    it(`a pin, at ${point}`, async () => {
      await withCopy(home, async (copy) => {
        await killAndRepeat(copy, point, ["pin", copy]);
        expect(
          fixtureContext(systemMachine, copy)
            .vault.list()
            .every(({ pinned }) => pinned),
        ).toBe(true);
      });
    });
  }
});

it("every crash point of the snapshot module is in a kill loop", () => {
  const loops = {
    "checkpoint.test.ts": ["capture", "layer", "stat-store", "publish", "compact"],
    "restore.test.ts": ["restore", "undo", "fork", "drill"],
    "restore-outside.test.ts": ["protect"],
    "delete.test.ts": ["delete"],
    "prune.test.ts": ["prune"],
    "import.test.ts": ["import"],
    "export-repair-pin.test.ts": ["export", "repair"],
  };
  const known = Object.values(loops).flat();
  const left = withPrefix("snapshot.").filter((name) => !known.includes(name.split(".")[1]!));
  expect(left).toEqual([]);
});
