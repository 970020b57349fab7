// INV-1 as a property: everything acknowledged survives every kill and every power loss, at every call, for any
// order of operations. The disk is simulated; a failure prints the seed and path that replay it.
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { createRandom } from "../testing/seeded-ids.ts";
import { createSimulatedDisk, type SimulatedDisk } from "../testing/simulated-disk.ts";
import { appendLine, createFile, makeDirectory, removeFile, replaceFile } from "./durable.ts";

const ABSENT = "(absent)";
const RUNS = 3000;
const TEMPORARY = /^\.[a-z]+\.\d+\.\d+\.tmp$/;

type Step =
  | { readonly do: "replace" | "create"; readonly name: string; readonly content: string }
  | { readonly do: "remove"; readonly name: string }
  | { readonly do: "append"; readonly line: string }
  | { readonly do: "directory"; readonly path: string };

interface Life {
  readonly steps: readonly Step[];
  /** After how many disk calls the process ends. */
  readonly calls: number;
  /** SIGKILL keeps unsynced changes, which are still in the page cache; power loss may drop them. */
  readonly ends: "kill" | "power";
}

const name = fc.constantFrom("/f", "/g");
const content = fc.stringMatching(/^[a-z]{1,40}$/);
const step: fc.Arbitrary<Step> = fc.oneof(
  fc.record({ do: fc.constantFrom("replace" as const, "create" as const), name, content }),
  fc.record({ do: fc.constant("remove" as const), name }),
  fc.record({ do: fc.constant("append" as const), line: content }),
  fc.record({ do: fc.constant("directory" as const), path: fc.constantFrom("/a", "/a/b", "/a/b/c", "/d") }),
);
const life: fc.Arbitrary<Life> = fc.record({
  steps: fc.array(step, { minLength: 1, maxLength: 6 }),
  calls: fc.nat({ max: 40 }),
  ends: fc.constantFrom("kill" as const, "power" as const),
});

/** What a reader may find: for each file the possible contents, and the lines and directories that must exist. */
class Expectation {
  readonly #files = new Map<string, Set<string>>();
  readonly #lines: string[] = [];
  readonly #directories = new Set<string>();

  attempt(step: Step): void {
    if (step.do === "replace" || step.do === "create") this.#allowed(step.name).add(step.content);
    if (step.do === "remove") this.#allowed(step.name).add(ABSENT);
  }

  acknowledge(step: Step, disk: SimulatedDisk, created: boolean): void {
    switch (step.do) {
      case "replace":
        this.#files.set(step.name, new Set([step.content]));
        break;
      case "create": {
        // "It already exists" is also a promise: the existing content stays.
        const there = disk.readFile(step.name).toString();
        expect(created ? [step.content] : [...this.#allowed(step.name)]).toContain(there);
        this.#files.set(step.name, new Set([there]));
        break;
      }
      case "remove":
        this.#files.set(step.name, new Set([ABSENT]));
        break;
      case "append":
        this.#lines.push(step.line);
        break;
      case "directory":
        for (let end = step.path.length; end > 0; end = step.path.lastIndexOf("/", end - 1)) {
          this.#directories.add(step.path.slice(0, end));
        }
    }
  }

  check(disk: SimulatedDisk): void {
    for (const [path, allowed] of this.#files) {
      const found = disk.kindOf(path) === undefined ? ABSENT : disk.readFile(path).toString();
      expect([...allowed], `${path} is whole, old or new`).toContain(found);
    }
    const log = disk.kindOf("/log") === undefined ? [] : disk.readFile("/log").toString("latin1").split("\n");
    let from = 0;
    for (const line of this.#lines) {
      const at = log.indexOf(line, from);
      expect(at, `acknowledged line ${line} in ${JSON.stringify(log)}`).toBeGreaterThanOrEqual(0);
      from = at + 1;
    }
    for (const path of this.#directories) expect(disk.kindOf(path), path).toBe("directory");
    const unexpected = disk
      .list("/")
      .filter((entry) => !/^([fgad]|log)$/.test(entry) && !TEMPORARY.test(entry));
    expect(unexpected, "names other than those written and temporaries").toEqual([]);
  }

  #allowed(path: string): Set<string> {
    const allowed = this.#files.get(path) ?? new Set([ABSENT]);
    this.#files.set(path, allowed);
    return allowed;
  }
}

function perform(disk: SimulatedDisk, step: Step): boolean {
  switch (step.do) {
    case "replace":
      replaceFile(disk, step.name, step.content);
      return true;
    case "create":
      return createFile(disk, step.name, step.content);
    case "remove":
      return removeFile(disk, step.name);
    case "append":
      appendLine(disk, "/log", step.line);
      return true;
    case "directory":
      return makeDirectory(disk, step.path);
  }
}

function runLife(disk: SimulatedDisk, { steps, calls }: Life, expectation: Expectation): void {
  disk.cutPowerAfter(calls);
  for (const step of steps) {
    expectation.attempt(step);
    let created: boolean;
    try {
      created = perform(disk, step);
    } catch {
      return;
    }
    expectation.acknowledge(step, disk, created);
  }
}

describe("durable writes under kills and power loss", () => {
  it("keep everything acknowledged, and readers only see complete contents", () => {
    fc.assert(
      fc.property(fc.array(life, { minLength: 1, maxLength: 4 }), fc.integer(), (lives, seed) => {
        const random = createRandom(seed);
        const expectation = new Expectation();
        let disk = createSimulatedDisk();
        for (const each of lives) {
          runLife(disk, each, expectation);
          disk.restorePower();
          if (each.ends === "power") disk = disk.crash(random);
          expectation.check(disk);
        }
        expectation.check(disk.crash(random));
      }),
      { numRuns: RUNS },
    );
  });

  it("makeDirectory makes a whole path durable, wherever two earlier callers were killed", () => {
    const whole = ["/a", "/a/b", "/a/b/c"];
    for (const first of whole)
      for (const second of whole)
        for (let calls = 0; calls < 200; calls++) {
          const disk = createSimulatedDisk();
          for (const [path, left] of [
            [first, calls % 14],
            [second, Math.floor(calls / 14)],
          ] as const) {
            disk.cutPowerAfter(left);
            try {
              makeDirectory(disk, path);
            } catch {}
            disk.restorePower();
          }
          makeDirectory(disk, "/a/b/c");
          for (let seed = 0; seed < 8; seed++) {
            expect(
              disk.crash(createRandom(seed)).kindOf("/a/b/c"),
              `${first}, then ${second}, killed after ${calls % 14} and ${Math.floor(calls / 14)} calls`,
            ).toBe("directory");
          }
        }
  });

  it("replaceFile leaves the old or the new content after power loss at each of its calls", () => {
    const probe = createSimulatedDisk();
    replaceFile(probe, "/f", "old content");
    const callsPerReplace = probe.calls;
    for (let calls = 0; calls <= callsPerReplace; calls++) {
      for (let seed = 0; seed < 250; seed++) {
        const disk = createSimulatedDisk();
        replaceFile(disk, "/f", "old content");
        disk.cutPowerAfter(calls);
        let saved = true;
        try {
          replaceFile(disk, "/f", "new content, and longer");
        } catch {
          saved = false;
        }
        const found = disk.crash(createRandom(seed)).readFile("/f").toString();
        const allowed = saved ? ["new content, and longer"] : ["old content", "new content, and longer"];
        expect(allowed, `power cut after ${calls} calls, seed ${seed}`).toContain(found);
      }
    }
  });
});
