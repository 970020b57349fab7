// Finds crash points by reading the sources, so that a new one is part of the kill loop automatically. Refuses names that
// are not literals, and names used twice.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** A named place in the sources where a test can kill the process. */
export interface CrashPoint {
  readonly name: string;
  readonly file: string;
  readonly line: number;
}

const CALL = /(?<!function )\bcrashPoint\(\s*(?:"([^"\\\n]+)"|'([^'\\\n]+)')?/g;
const COMMENT = /^\s*(?:\/\/|\/?\*)/;

/** Every crash point in the TypeScript files below `sourceDirectory`, tests excluded, sorted by name. */
export function listCrashPoints(sourceDirectory: string): CrashPoint[] {
  const found = new Map<string, CrashPoint>();
  for (const name of readdirSync(sourceDirectory, { recursive: true, encoding: "utf8" }).sort()) {
    if (!name.endsWith(".ts") || name.endsWith(".test.ts") || name.endsWith(".d.ts")) continue;
    const file = join(sourceDirectory, name);
    for (const point of crashPointsOf(file, readFileSync(file, "utf8"))) {
      const other = found.get(point.name);
      if (other) throw new Error(`${place(point)}: crash point ${point.name} is already at ${place(other)}`);
      found.set(point.name, point);
    }
  }
  return [...found.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
}

function crashPointsOf(file: string, source: string): CrashPoint[] {
  // Blank out comments, which may mention crash points, but keep the line numbers.
  const code = source
    .split("\n")
    .map((line) => (COMMENT.test(line) ? "" : line))
    .join("\n");
  return [...code.matchAll(CALL)].map((match) => {
    const line = code.slice(0, match.index).split("\n").length;
    const name = match[1] ?? match[2];
    if (name === undefined) throw new Error(`${file}:${line}: the name of a crash point must be a literal`);
    return { name, file, line };
  });
}

function place({ file, line }: CrashPoint): string {
  return `${file}:${line}`;
}
