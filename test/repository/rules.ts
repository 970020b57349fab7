// Rules about single files that no linter has: headers, length, names, skipped tests, machine-specific paths. Pure: each
// takes a file and returns one line per violation.
import { posix } from "node:path";
import type { SourceFile } from "./files.ts";

const MAX_LINES = 350;
const MAX_FILES_PER_FOLDER = 24;

export function checkHeader({ path, text }: SourceFile): string[] {
  const exempt = path.startsWith("src/cli/commands/");
  return exempt || /^(?:#!.*\n)?(?:\/\/|\/\*)/.test(text)
    ? []
    : [`${path} has no header comment: describe what the file does`];
}

export function checkLength({ path, text }: SourceFile): string[] {
  const lines = text.trimEnd().split("\n").length;
  return lines > MAX_LINES ? [`${path} has ${lines} lines, more than ${MAX_LINES}: split it`] : [];
}

export function checkName({ path }: SourceFile): string[] {
  const name = posix.basename(path);
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9-]+)+$/.test(name)) return [`${path} is not in kebab-case`];
  if (/(?:^|-)(?:utils?|helpers?|managers?|commons?)(?:-|\.)/.test(name))
    return [`${path} is not named after its main noun or verb`];
  return [];
}

export function checkFolderSizes(paths: readonly string[]): string[] {
  const counts = Map.groupBy(paths, (path) => posix.dirname(path));
  return [...counts]
    .filter(([, files]) => files.length > MAX_FILES_PER_FOLDER)
    .map(
      ([folder, files]) => `${folder}/ has ${files.length} source files, more than ${MAX_FILES_PER_FOLDER}`,
    );
}

/** A skipped test needs a reason, in the call or in a comment on its line or the line above. */
export function checkSkips({ path, text }: SourceFile): string[] {
  const lines = text.split("\n");
  return lines.flatMap((line, index) => {
    const [, kind] = /^\s*(?:it|test|describe)(?:\.\w+)*\.(only|skip|todo)\b/.exec(line) ?? [];
    const at = `${path}:${index + 1}`;
    if (kind === "only") return [`${at}: .only keeps all other tests from running`];
    const explained = [line, lines[index - 1] ?? ""].some((each) => /\/\/|\*/.test(each));
    if (kind !== undefined && !explained) return [`${at}: .${kind} without a reason in a comment`];
    return /\b(?:context|ctx|t|task)\.skip\(\s*\)/.test(line) ? [`${at}: skip() without a reason`] : [];
  });
}

/** No file names a home directory or the directory of this checkout. */
export function checkMachinePaths({ path, text }: SourceFile, checkout: string): string[] {
  const home =
    /(?<![\w.<>])\/(?:home|Users)\/(?!(?:user|you|me|alice|runner)\b)[a-z][\w.-]*\/|\/root\/[\w.-]+/g;
  const found = [...text.matchAll(home)].map(([place]) => place);
  if (text.includes(`${checkout}/`)) found.push(checkout);
  return found.map((place) => `${path} names ${place}, a path of a particular machine`);
}
