// What the built command line loads. An agent calls `heartbeat`, `job beat` and the flow commands between its steps, so
// they must start about as fast as Node itself: every chunk costs half a millisecond, every builtin such as node:crypto
// several. `npm run bench -- cell flow` measures it; this test names the file that makes it slower.
import { type OutputChunk, rolldown } from "rolldown";
import { beforeAll, describe, expect, it } from "vitest";
import { commandLine } from "../../rolldown.config.ts";
import { ROOT } from "./files.ts";

let chunks: Map<string, OutputChunk>;

beforeAll(async () => {
  await using bundle = await rolldown({ ...commandLine, cwd: ROOT, logLevel: "silent" });
  const { output } = await bundle.generate(commandLine.output);
  chunks = new Map(output.filter((each) => each.type === "chunk").map((chunk) => [chunk.fileName, chunk]));
});

/** A chunk and all chunks that it imports statically. */
function closure(fileName: string, seen = new Set<string>()): Set<string> {
  const chunk = chunks.get(fileName);
  if (chunk === undefined || seen.has(fileName)) return seen;
  seen.add(fileName);
  for (const next of chunk.imports) closure(next, seen);
  return seen;
}

function chunkOf(source: string): OutputChunk {
  const found = [...chunks.values()].find(({ moduleIds }) => moduleIds.includes(`${ROOT}/${source}`));
  if (found === undefined) throw new Error(`no chunk contains ${source}`);
  return found;
}

function sourcesOf(fileNames: Iterable<string>): string[] {
  return [...fileNames]
    .flatMap((name) => chunks.get(name)?.moduleIds ?? [])
    .filter((id) => id.startsWith(`${ROOT}/`))
    .map((id) => id.slice(ROOT.length + 1));
}

function modulesOf(fileNames: Iterable<string>): string[] {
  return [...new Set(sourcesOf(fileNames).map((path) => path.split("/")[1] ?? ""))].sort();
}

function packagesOf(fileNames: Iterable<string>): string[] {
  const imported = [...fileNames].flatMap((name) => chunks.get(name)?.imports ?? []);
  return imported.filter((name) => !chunks.has(name) && !name.startsWith("node:"));
}

const names = (fileNames: Iterable<string>) =>
  [...fileNames].map((name) => name.replace(/-[\w-]{8}\.js$/, ".js")).sort();

describe("heartbeat and job beat load", () => {
  it("the entry and one core chunk", () => {
    expect(names(closure("main.js"))).toEqual(["chunks/core.js", "main.js"]);
    const core = closure("main.js");
    expect(sourcesOf(core)).toContain("src/cli/commands/cells/heartbeat.ts");
    expect(sourcesOf(core)).toContain("src/cli/commands/cells/job-beat.ts");
  });

  it("only cell, cli and platform code, and no package", () => {
    expect(modulesOf(closure("main.js"))).toEqual(["cell", "cli", "platform"]);
    expect(packagesOf(closure("main.js"))).toEqual([]);
  });

  it("no database, native binding or secret rules", () => {
    const loaded = sourcesOf(closure("main.js"));
    for (const heavy of ["sqlite", "posix", "postgres/pool", "secrets/find", "worker-pool"]) {
      expect(loaded).not.toContain(`src/platform/${heavy}.ts`);
    }
  });
});

describe.each(["start", "update", "resume", "complete", "fail", "block"])("flow %s loads", (command) => {
  const loaded = () => closure(chunkOf(`src/cli/commands/flows/${command}.ts`).fileName);

  it("one chunk besides the core, shared by all flow commands between two steps", () => {
    expect(names(loaded())).toEqual(["chunks/core.js", "chunks/flow.js"]);
  });

  it("only flow code on top of the core, and no package", () => {
    expect(modulesOf(loaded())).toEqual(["cell", "cli", "flow", "platform"]);
    expect(packagesOf(loaded())).toEqual([]);
  });
});

describe("hook loads", () => {
  const loaded = () => closure(chunkOf("src/cli/commands/agents/hook.ts").fileName);

  it("one chunk besides the core, with all adapters", () => {
    expect(names(loaded())).toEqual(["chunks/core.js", "chunks/hook.js"]);
    expect(sourcesOf(loaded())).toContain("src/agents/adapters.ts");
  });

  it("no package, and of the pit only the wake file", () => {
    expect(modulesOf(loaded())).toEqual(["agents", "cell", "cli", "pit", "platform"]);
    expect(sourcesOf(loaded()).filter((path) => path.startsWith("src/pit/"))).toEqual([
      "src/pit/supervise/wake-file.ts",
    ]);
    expect(packagesOf(loaded())).toEqual([]);
  });
});

describe("checkpoint, where a pit takes it, loads", () => {
  const loaded = () => closure(chunkOf("src/cli/commands/checkpoints/checkpoint.ts").fileName);

  it("one chunk besides the core, and no package", () => {
    expect(names(loaded())).toEqual(["chunks/checkpoint.js", "chunks/core.js"]);
    expect(packagesOf(loaded())).toEqual([]);
  });

  it("nothing that captures", () => {
    const beyond = sourcesOf(loaded()).filter((path) => !/^src\/(cell|cli|platform)\//.test(path));
    expect(beyond.sort()).toEqual(["src/http/caller.ts", "src/snapshot/model/entry.ts"]);
  });
});

describe("a command that is not called between steps", () => {
  it.each(["agents/stop", "agents/why", "checkpoints/restore"])("%s loads few chunks", (command) => {
    const { fileName } = chunkOf(`src/cli/commands/${command}.ts`);
    expect(names(closure(fileName))).toContain("chunks/shared.js");
    expect(closure(fileName).size).toBeLessThanOrEqual(20);
  });
});
