// The event log is append-only and numbered; newer, foreign and damaged files are refused with clear errors.
import { mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import fc from "fast-check";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { systemDisk } from "../platform/disk.ts";
import { createSimulatedMachine } from "../testing/simulated-machine.ts";
import { EVENT_KINDS, openRegistry } from "./registry.ts";
import { APPLICATION_ID, MIGRATIONS } from "./schema.ts";

const START_MS = 1_800_000_000_000;

let directory: string;
let path: string;
let machine: ReturnType<typeof createSimulatedMachine>;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "lazarus-registry-"));
  path = join(directory, "deep", "registry.db");
  machine = createSimulatedMachine({ disk: systemDisk, startMs: START_MS });
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

describe("the event log", () => {
  it("numbers events in order, with the time of the clock", async () => {
    using registry = openRegistry(machine, path);
    const first = registry.append({ kind: "init", mission: "m1", data: { root: "/m" } });
    await machine.clock.advance(5);
    registry.append({ kind: "alert", mission: null });
    expect(first).toEqual({ seq: 1, time_ms: START_MS, mission: "m1", kind: "init", data: { root: "/m" } });
    expect(registry.events({})).toEqual([
      first,
      { seq: 2, time_ms: START_MS + 5, mission: null, kind: "alert", data: {} },
    ]);
  });

  it("persists when the registry is closed and opened again", () => {
    {
      using registry = openRegistry(machine, path);
      registry.append({ kind: "init", mission: "m1" });
    }
    using again = openRegistry(machine, path);
    expect(again.events({})).toHaveLength(1);
  });

  it("selects by mission, after a number, and the newest N in order", () => {
    using registry = openRegistry(machine, path);
    for (const mission of ["a", "b", "a", "b", "a"]) registry.append({ kind: "init", mission });
    const seqs = (query: Parameters<typeof registry.events>[0]) =>
      registry.events(query).map(({ seq }) => seq);
    expect(seqs({ mission: "a" })).toEqual([1, 3, 5]);
    expect(seqs({ afterSeq: 3 })).toEqual([4, 5]);
    expect(seqs({ last: 2 })).toEqual([4, 5]);
    expect(seqs({ mission: "a", afterSeq: 1, last: 1 })).toEqual([5]);
    expect(seqs({ mission: "none" })).toEqual([]);
  });

  it("is append-only: rows cannot be changed or deleted", () => {
    using registry = openRegistry(machine, path);
    registry.append({ kind: "init", mission: "m1" });
    expect(() => registry.database.exec("UPDATE event SET mission = 'x'")).toThrow(
      "the event log is append-only",
    );
    expect(() => registry.database.exec("DELETE FROM event")).toThrow("the event log is append-only");
  });

  it("returns whatever was appended", () => {
    using registry = openRegistry(machine, path);
    const events = fc.record({
      kind: fc.constantFrom(...EVENT_KINDS),
      mission: fc.option(fc.string({ unit: "grapheme" })),
      data: fc.dictionary(fc.string(), fc.jsonValue()),
    });
    fc.assert(
      fc.property(events, (event) => {
        const { seq } = registry.append(event);
        const [found] = registry.events({ afterSeq: seq - 1 });
        expect(found).toEqual({
          ...event,
          data: JSON.parse(JSON.stringify(event.data)),
          seq,
          time_ms: START_MS,
        });
      }),
      { numRuns: 40 },
    );
  });

  it("can have two concurrent writers", () => {
    using one = openRegistry(machine, path);
    using two = openRegistry(machine, path);
    expect([one, two, one, two].map((each) => each.append({ kind: "init", mission: "m" }).seq)).toEqual([
      1, 2, 3, 4,
    ]);
  });
});

describe("the file", () => {
  it("is durable (WAL, synchronous FULL) and readable by its owner only", () => {
    using registry = openRegistry(machine, path);
    expect(registry.database.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
    expect(registry.database.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 2 });
    expect(statSync(path).mode & 0o777).toBe(0o600);
  });

  it("has an empty table of checkpoints", () => {
    using registry = openRegistry(machine, path);
    const row = registry.database.prepare("SELECT count(*) AS n FROM checkpoint").get();
    expect(row).toEqual({ n: 0 });
  });

  it("of a newer Lazarus is refused with a clear message and left alone", () => {
    openRegistry(machine, path)[Symbol.dispose]();
    const raw = new DatabaseSync(path);
    raw.exec(`PRAGMA user_version = ${MIGRATIONS.length + 7}`);
    raw.close();
    expect(() => openRegistry(machine, path)).toThrow(
      expect.objectContaining({
        code: "REGISTRY_NEWER",
        message: `the registry ${path} has schema ${MIGRATIONS.length + 7}; this version of Lazarus supports up to ${MIGRATIONS.length}`,
      }),
    );
  });

  it("of another program is refused and left alone", () => {
    const foreign = join(directory, "foreign.db");
    const raw = new DatabaseSync(foreign);
    raw.exec("CREATE TABLE theirs (x)");
    expect(() => openRegistry(machine, foreign)).toThrow(
      expect.objectContaining({ code: "REGISTRY_FOREIGN" }),
    );
    expect(raw.prepare("SELECT name FROM sqlite_schema").all()).toEqual([{ name: "theirs" }]);
    expect(raw.prepare("PRAGMA application_id").get()).not.toEqual({ application_id: APPLICATION_ID });
    raw.close();
  });

  it("that is damaged is reported with a hint", () => {
    const damaged = join(directory, "damaged.db");
    writeFileSync(damaged, "this is not a database, but long enough to be taken for one ".repeat(50));
    expect(() => openRegistry(machine, damaged)).toThrow(
      expect.objectContaining({
        code: "REGISTRY_DAMAGED",
        hint: `move it away: mv ${damaged} ${damaged}.damaged`,
      }),
    );
  });

  it("that is a directory is reported as a permission error", () => {
    expect(() => openRegistry(machine, directory)).toThrow(expect.objectContaining({ code: "PERMISSION" }));
  });
});
