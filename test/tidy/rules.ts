// The house rules as functions from source text to offences. They know no file system; tidy.test.ts feeds them.
import { posix } from "node:path";
import type { Allowance, Rule } from "./allowances.ts";
import { type Masked, mask } from "./lexer.ts";

export interface SourceFile {
  /** Relative to the checkout, with slashes. */
  readonly path: string;
  readonly text: string;
}

export interface Offence {
  readonly path: string;
  readonly line: number;
  readonly rule: Rule;
  readonly says: string;
}

const MAX_LINES = 350;

/** Which rooms a room may import from, besides itself. What is not named here is not a room. */
export const ROOMS: Readonly<Record<string, readonly string[]>> = {
  platform: [],
  cell: ["platform"],
  registry: ["platform", "cell"],
  alerts: ["platform", "cell", "registry"],
  service: ["platform", "cell", "registry"],
  flow: ["platform", "cell", "registry", "alerts", "service"],
  run: ["platform", "cell", "registry", "alerts", "service"],
  snapshot: ["platform", "cell", "registry", "alerts", "service", "flow", "run"],
  pit: ["platform", "cell", "registry", "alerts", "service", "flow", "run", "snapshot"],
  http: ["platform", "cell", "registry", "alerts", "service", "flow", "run", "snapshot", "pit"],
  integrations: ["platform", "cell", "registry", "alerts", "service", "flow", "run", "snapshot", "pit"],
  cli: [
    "platform",
    "cell",
    "registry",
    "alerts",
    "service",
    "flow",
    "run",
    "snapshot",
    "pit",
    "http",
    "integrations",
  ],
  testing: ["platform"],
};

/** What surrounds the kernel and must stay replaceable: it is handed in, never imported. */
const AROUND_THE_KERNEL = /(^|\/)(critic|schedule|batteries|audit|budget|persona|skill)s?(\/|\.ts$|$)/;

interface Ban {
  readonly rule: Rule;
  readonly pattern: RegExp;
  readonly says: string;
}

const BANS: readonly Ban[] = [
  {
    rule: "clock",
    pattern:
      /\bDate\.now\b|\bnew Date\(\s*\)|\bnew Date\b(?!\s*\()|(?<![.\w])(?<!\bnew )Date\(|\bperformance\.now\b|\bhrtime\b/g,
    says: "the wall clock is handed in (INV-9): take a Clock",
  },
  {
    rule: "randomness",
    pattern:
      /\bMath\.random\b|\brandomBytes\b|\brandomUUID\b|\brandomInt\b|\bgetRandomValues\b|\brandomFillSync\b/g,
    says: "randomness is handed in (INV-9): take an IdSource",
  },
  {
    rule: "environment",
    pattern: /\bprocess\.env\b/g,
    says: "the environment is handed in: take Surroundings",
  },
  { rule: "console", pattern: /\bconsole\s*\./g, says: "only the terminal speaks: use the context" },
  {
    rule: "durable-write",
    pattern:
      /\b(?:writeFileSync|writeFile|appendFileSync|appendFile|renameSync|linkSync|fsyncSync|fdatasyncSync|copyFileSync|cpSync|createWriteStream|writeSync|writevSync|truncateSync|ftruncateSync)\s*\(|\bfs\.promises\b/g,
    says: "durable writes go through platform/ (INV-1, INV-9)",
  },
];

export function checkSource(file: SourceFile): Offence[] {
  const masked = mask(file.text);
  return [
    ...checkBans(file, masked),
    ...checkImports(file, masked),
    ...checkHeader(file),
    ...checkLength(file),
    ...checkName(file),
  ];
}

function checkBans({ path, text }: SourceFile, { code, withoutComments }: Masked): Offence[] {
  if (isTest(path)) return [];
  const found = BANS.flatMap(({ rule, pattern, says }) =>
    rule === "durable-write" && path.startsWith("src/platform/")
      ? []
      : [...code.matchAll(pattern)].map(({ index }) => ({ path, line: lineOf(text, index), rule, says })),
  );
  for (const { index } of withoutComments.matchAll(/["'](?:node:)?fs\/promises["']/g)) {
    found.push({ path, line: lineOf(text, index), rule: "durable-write", says: BANS.at(-1)!.says });
  }
  return found;
}

const IMPORT =
  /\b(?:import|export)\s[^;'"]*?\bfrom\s*["']([^"']+)["']|\bimport\s*\(\s*["']([^"']+)["']|\bimport\s*["']([^"']+)["']/g;

function checkImports({ path, text }: SourceFile, { withoutComments }: Masked): Offence[] {
  const room = roomOf(path);
  if (room === undefined || isTest(path)) return [];
  const offences: Offence[] = [];
  for (const match of withoutComments.matchAll(IMPORT)) {
    const specifier = match[1] ?? match[2] ?? match[3] ?? "";
    if (!specifier.startsWith(".")) continue;
    const target = posix.join(posix.dirname(path), specifier);
    // The match begins at `import`, which may stand lines above the specifier.
    const line = lineOf(text, match.index + match[0].lastIndexOf(specifier));
    const say = (says: string) => offences.push({ path, line, rule: "imports", says });
    const to = roomOf(target);
    if (!target.startsWith("src/")) say(`src/ does not import ${target}`);
    else if (to !== undefined && to !== room && !ROOMS[room]?.includes(to))
      say(`${room}/ does not import ${to}/`);
    if (isKernel(path) && AROUND_THE_KERNEL.test(specifier))
      say(`the kernel in run/ does not import ${specifier}`);
  }
  return offences;
}

function isKernel(path: string): boolean {
  return path.startsWith("src/run/") && !/^src\/run\/(?:batteries|critic|schedule)\//.test(path);
}

function checkHeader({ path, text }: SourceFile): Offence[] {
  const exempt = isTest(path) || path.startsWith("src/cli/commands/");
  if (exempt || /^(?:#!.*\n)?(?:\/\/|\/\*)/.test(text)) return [];
  return [
    { path, line: 1, rule: "header", says: "a file begins with a comment: what it owns and never does" },
  ];
}

function checkLength({ path, text }: SourceFile): Offence[] {
  const lines = text.trimEnd().split("\n").length;
  if (isTest(path) || lines <= MAX_LINES) return [];
  return [
    {
      path,
      line: MAX_LINES,
      rule: "length",
      says: `${lines} lines: more than ${MAX_LINES} want to be two rooms`,
    },
  ];
}

export function checkName({ path }: SourceFile): Offence[] {
  const name = posix.basename(path);
  const offend = (says: string): Offence[] => [{ path, line: 1, rule: "name", says }];
  if (!/^[a-z0-9]+(?:-[a-z0-9]+)*(?:\.[a-z0-9-]+)+$/.test(name)) return offend("file names are kebab-case");
  if (/(?:^|-)(?:utils?|helpers?|managers?|commons?)(?:-|\.)/.test(name))
    return offend("named for its noun or verb, never utils, helpers, manager or common");
  return [];
}

/** Tests that are switched off say why: in their title, in the call, or in a comment on the line or above it. */
export function checkTest({ path, text }: SourceFile): Offence[] {
  const { code } = mask(text);
  const lines = text.split("\n");
  const offences: Offence[] = [];
  for (const { 0: call, 1: what, index } of code.matchAll(
    /\b(?:it|test|describe)(?:\.\w+)*\.(only|skip|todo)\b/g,
  )) {
    const line = lineOf(text, index);
    if (what === "only")
      offences.push({ path, line, rule: "test", says: `${call} leaves all the others out` });
    else if (!hasComment(lines[line - 1]) && !hasComment(lines[line - 2]))
      offences.push({ path, line, rule: "test", says: `${call} without a reason: say why in a comment` });
  }
  for (const { index } of code.matchAll(/\b(?:context|ctx|t|task)\.skip\(\s*\)/g)) {
    offences.push({
      path,
      line: lineOf(text, index),
      rule: "test",
      says: "skipped without a reason: skip(reason)",
    });
  }
  return offences;
}

function hasComment(line: string | undefined): boolean {
  return line !== undefined && /\/\/|\*/.test(line);
}

/** No file names a place on the machine of whoever wrote it: a home directory, or where this checkout lies. */
export function checkPaths({ path, text }: SourceFile, checkout: string): Offence[] {
  const home =
    /(?<![\w.<>])\/(?:home|Users)\/(?!(?:user|you|me|alice|runner)\b)[a-z][\w.-]*\/|\/root\/[\w.-]+/g;
  const places = [...text.matchAll(home)].map(({ 0: place, index }) => ({ place, index }));
  const here = text.indexOf(`${checkout}/`);
  if (here >= 0) places.push({ place: checkout, index: here });
  return places.map(({ place, index }) => ({
    path,
    line: lineOf(text, index),
    rule: "path",
    says: `${place} is a place on somebody's machine`,
  }));
}

export function checkLockFile({ path, text }: SourceFile): Offence[] {
  return [...text.matchAll(/"resolved"\s*:/g)].map(({ index }) => ({
    path,
    line: lineOf(text, index),
    rule: "lock-file" as const,
    says: "the lock file holds no addresses: npm install with omit-lockfile-registry-resolved",
  }));
}

/** Takes away what is allowed with a reason. */
export function forgive(offences: readonly Offence[], allowed: readonly Allowance[]): Offence[] {
  return offences.filter((offence) => !allowed.some((allowance) => covers(allowance, offence)));
}

/** Allowances of files that no longer need them: as bad as an offence, since they hide the next one. */
export function findIdle(
  offences: readonly Offence[],
  allowed: readonly Allowance[],
  files: readonly SourceFile[],
): Offence[] {
  const isIdle = (allowance: Allowance) =>
    files.some(({ path }) => path === allowance.path) &&
    !offences.some((offence) => covers(allowance, offence));
  return allowed
    .filter(isIdle)
    .map(({ path, rule }) => ({ path, line: 1, rule, says: `is allowed ${rule} and no longer needs it` }));
}

function covers({ rule, path }: Allowance, offence: Offence): boolean {
  return offence.rule === rule && offence.path === path;
}

export function formatOffence({ path, line, rule, says }: Offence): string {
  return `${path}:${line}: ${rule}: ${says}`;
}

function roomOf(path: string): string | undefined {
  const [top, room, ...below] = path.split("/");
  return top === "src" && below.length > 0 ? room : undefined;
}

function isTest(path: string): boolean {
  return path.endsWith(".test.ts");
}

function lineOf(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}
