// The files of the checkout, for tests about the repository itself.
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";

export const ROOT = join(import.meta.dirname, "..", "..");

export interface SourceFile {
  /** Relative to the checkout, with slashes. */
  readonly path: string;
  readonly text: string;
}

export function readSource(path: string): SourceFile {
  return { path, text: readFileSync(join(ROOT, path), "utf8") };
}

/** The files below a directory whose path matches, except fixtures and scratch directories. */
export function listSources(directory: string, pattern: RegExp): SourceFile[] {
  return readdirSync(join(ROOT, directory), { recursive: true, encoding: "utf8" })
    .map((name) => `${directory}/${name}`)
    .filter((path) => pattern.test(path) && !/\/(?:\.work|golden|fixtures)\//.test(path))
    .filter((path) => statSync(join(ROOT, path)).isFile())
    .sort()
    .map(readSource);
}
