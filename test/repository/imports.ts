// The import graph of src/, read from the sources, and the rules about it as pure functions. Biome checks cycles between
// files; these check what it cannot express: the direction between modules and cycles between sub-folders.
import { posix } from "node:path";

export interface Import {
  /** Both are paths relative to the checkout, such as `src/cell/scan.ts`. */
  readonly from: string;
  readonly to: string;
}

/** Lower layers first. A module imports from lower layers only, never from its own. */
export const LAYERS: readonly (readonly string[])[] = [
  ["platform"],
  ["cell"],
  ["registry"],
  ["effects"],
  ["alerts", "service"],
  ["flow", "run", "agents"],
  ["snapshot"],
  ["pit"],
  ["http", "integrations"],
  ["cli"],
];

/** `lazarus/testing` is built on these; production code never imports it. */
const TESTING_MAY_IMPORT = ["platform", "run"];

/** The kernel of a run takes these as ports and never imports them. */
const OPTIONAL_PARTS = /^src\/run\/(?:batteries|critic|schedule)\//;

// Matches what Biome's formatter emits: a statement that begins a line, and dynamic imports anywhere.
const IMPORT =
  /^(?:import|export)\s[\w\s{},*$]*?\bfrom\s*["']([^"']+)["']|^import\s*["']([^"']+)["']|\bimport\(\s*["']([^"']+)["']/gm;

export function readImports(path: string, text: string): Import[] {
  const withoutComments = text.replaceAll(/^\s*(?:\/\/|\*|\/\*).*$/gm, "");
  return [...withoutComments.matchAll(IMPORT)]
    .map((match) => match[1] ?? match[2] ?? match[3] ?? "")
    .filter((specifier) => specifier.startsWith("."))
    .map((specifier) => ({ from: path, to: posix.join(posix.dirname(path), specifier) }));
}

export function wrongDirections(imports: readonly Import[]): string[] {
  return imports.flatMap(({ from, to }) => {
    if (!to.startsWith("src/")) return [`${from} imports ${to}, which is outside src/`];
    const [source, target] = [moduleOf(from), moduleOf(to)];
    if (source === target || source === undefined || target === undefined) return [];
    const allowed =
      source === "testing"
        ? TESTING_MAY_IMPORT.includes(target)
        : target !== "testing" && layerOf(target) < layerOf(source);
    return allowed ? [] : [`${from} imports ${to}: ${source}/ may not import ${target}/`];
  });
}

export function kernelImports(imports: readonly Import[]): string[] {
  return imports
    .filter(({ from, to }) => from.startsWith("src/run/kernel/") && OPTIONAL_PARTS.test(to))
    .map(({ from, to }) => `${from} imports ${to}: the kernel takes it as a port`);
}

/** Cycles between the sub-folders of a module. Files directly in a module's folder are covered by Biome. */
export function folderCycles(imports: readonly Import[]): string[] {
  const graph = new Map<string, Set<string>>();
  for (const { from, to } of imports) {
    const [source, target] = [posix.dirname(from), posix.dirname(to)];
    if (source === target || moduleOf(from) !== moduleOf(to)) continue;
    if (isModuleRoot(source) || isModuleRoot(target)) continue;
    if (!graph.has(source)) graph.set(source, new Set());
    graph.get(source)?.add(target);
  }
  return findCycles(graph);
}

/** Each cycle once, as `a → b → a`, found by depth-first search. */
export function findCycles(graph: ReadonlyMap<string, ReadonlySet<string>>): string[] {
  const cycles: string[] = [];
  const finished = new Set<string>();
  const visit = (node: string, path: readonly string[]): void => {
    const start = path.indexOf(node);
    if (start >= 0) {
      cycles.push([...path.slice(start), node].join(" → "));
      return;
    }
    if (finished.has(node)) return;
    for (const next of graph.get(node) ?? []) visit(next, [...path, node]);
    finished.add(node);
  };
  for (const node of [...graph.keys()].sort()) visit(node, []);
  return cycles;
}

export function moduleOf(path: string): string | undefined {
  const [top, module, ...rest] = path.split("/");
  return top === "src" && rest.length > 0 ? module : undefined;
}

function layerOf(module: string): number {
  return LAYERS.findIndex((layer) => layer.includes(module));
}

function isModuleRoot(folder: string): boolean {
  return folder.split("/").length <= 2;
}
