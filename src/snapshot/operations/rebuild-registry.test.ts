import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import {
  BASE,
  initializedContext,
  makeLayer,
  publishCheckpoint,
  type SeededMachine,
  seededMachine,
} from "../../../test/snapshot/hand-made.ts";
import { forgetCheckpoints, indexCheckpoint, listCheckpoints } from "../../registry/checkpoints.ts";
import { openRegistry } from "../../registry/registry.ts";
import type { MissionContext } from "../mission-context.ts";
import type { CheckpointRef } from "../model/entry.ts";
import { readCheckpoint } from "../vault/manifest.ts";
import { recoverRefs } from "../vault/salvage.ts";
import { rebuildRegistry } from "./rebuild-registry.ts";
import { checkpointRow } from "./record.ts";

let home: string;
let context: MissionContext;
let refs: CheckpointRef[];
let machine: SeededMachine;

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "lazarus-rebuild-"));
  machine = seededMachine();
  context = await initializedContext(machine, home, "deploy-42");
  const base = makeLayer(context, BASE);
  const delta = makeLayer(context, [{ path: "worktree/a.txt", content: "2" }]);
  publishCheckpoint(context, [base], { message: 'first }{ "odd"' });
  await machine.clock.advance(5000);
  const second = publishCheckpoint(context, [base, delta], {
    reason: "crash",
    pinned: true,
    provenAtMs: machine.clock.nowMs(),
  });
  await machine.clock.advance(5000);
  // Nothing changed since: one more entry on the same manifest.
  const id = "20261115-235320-repeat";
  const third = {
    ...second,
    id,
    createdAtMs: Date.UTC(2026, 10, 15, 23, 53, 20, 7),
    pinned: false,
    reason: "scheduled" as const,
  };
  context.vault.publish([...context.vault.list(), third]);
  refs = context.vault.list();
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

const file = () => join(context.vault.root, "index.json");

describe("registry rebuild", () => {
  it("fills an empty registry from the vaults", async () => {
    const { missions, movedAside } = await rebuildRegistry(machine, context.config);
    expect(missions).toEqual([
      { mission: "deploy-42", checkpoints: 3, unreadable: [], repaired: null, keptAt: null },
    ]);
    expect(movedAside).toBeNull();
    using registry = openRegistry(machine, context.config.registry_file);
    expect(listCheckpoints(registry, { mission: "deploy-42" })).toMatchObject(
      refs.map((ref) => ({
        id: ref.id,
        reason: ref.reason,
        pinned: ref.pinned,
        created_ms: ref.createdAtMs,
        manifest: ref.manifest,
      })),
    );
  });

  it("removes missions and checkpoints that no vault has", async () => {
    {
      using registry = openRegistry(machine, context.config.registry_file);
      const { metadata } = readCheckpoint(context.vault, refs[0]!);
      const stray = { ...refs[0]!, id: "stray" };
      indexCheckpoint(registry, checkpointRow("gone", refs[0]!, metadata));
      indexCheckpoint(registry, checkpointRow("deploy-42", stray, metadata));
      indexCheckpoint(registry, checkpointRow("deploy-42", { ...stray, pinned: true }, metadata));
      expect(listCheckpoints(registry)).toHaveLength(2);
      forgetCheckpoints(registry, "gone", ["nobody"]);
    }
    await rebuildRegistry(machine, context.config);
    using registry = openRegistry(machine, context.config.registry_file);
    expect(
      listCheckpoints(registry)
        .map(({ id }) => id)
        .sort(),
    ).toEqual(refs.map(({ id }) => id).sort());
  });

  it("repairs a damaged index from the manifests and keeps the damaged file", async () => {
    const text = readFileSync(file(), "utf8").replace(
      '"vnd.lazarus.pinned":"true"',
      '"vnd.lazarus.pinned":"true\u0001',
    );
    writeFileSync(file(), text);
    expect(() => context.vault.list()).toThrow(/damaged/);
    const { missions } = await rebuildRegistry(machine, context.config);
    expect(missions[0]).toMatchObject({ checkpoints: 3 });
    expect(missions[0]?.repaired).toContain("damaged");
    expect(readFileSync(missions[0]!.keptAt!, "utf8")).toBe(text);
    expect(context.vault.list().map(({ id }) => id)).toEqual(refs.map(({ id }) => id));
  });

  it("recovers the checkpoints when the index is missing or empty", async () => {
    for (const damage of [() => rmSync(file()), () => writeFileSync(file(), "")]) {
      damage();
      await rebuildRegistry(machine, context.config);
      // The repeated checkpoint of the unchanged cell existed only in the index.
      expect(context.vault.list()).toMatchObject([{ id: refs[0]!.id }, { id: refs[1]!.id, reason: "crash" }]);
    }
  });

  it("loses no checkpoint to one flipped byte in the index", () => {
    const whole = readFileSync(file());
    fc.assert(
      fc.property(fc.nat(whole.length - 1), fc.integer({ min: 1, max: 255 }), (at, mask) => {
        const bytes = Buffer.from(whole);
        bytes[at]! ^= mask;
        writeFileSync(file(), bytes);
        const salvaged = recoverRefs(context.vault);
        for (const ref of refs.slice(0, 2)) {
          const found = salvaged.find(({ id }) => id === ref.id);
          expect(found).toMatchObject({
            manifest: ref.manifest,
            createdAtMs: ref.createdAtMs,
            reason: ref.reason,
            message: ref.message,
          });
        }
      }),
      { numRuns: 300 },
    );
  });

  it("leaves an intact vault unchanged", async () => {
    const before = readFileSync(file());
    await rebuildRegistry(machine, context.config);
    expect(readFileSync(file())).toEqual(before);
    expect(
      readdirSync(join(context.vault.root, "lazarus")).filter((name) => name.startsWith("index-damaged")),
    ).toEqual([]);
  });

  it("moves an unreadable registry aside", async () => {
    writeFileSync(
      context.config.registry_file,
      "this is not a database, but long enough to be taken for one ".repeat(20),
    );
    const { movedAside } = await rebuildRegistry(machine, context.config);
    expect(existsSync(movedAside!)).toBe(true);
    using registry = openRegistry(machine, context.config.registry_file);
    expect(listCheckpoints(registry)).toHaveLength(3);
  });
});
