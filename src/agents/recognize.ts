// Finds the agent behind a command line: plain, by path, behind `env`, `nice`, `npx`, `sh -c` and the like. A user's
// script that starts an agent is recognized only if the config declares its name. Pure: nothing is looked up on disk.
import { basename } from "node:path";
import type { Adapter, CommandLine } from "./adapter.ts";
import { type Grammar, readWords } from "./arguments.ts";
import { parseSimpleCommand } from "./shell-line.ts";

export interface Recognized {
  readonly adapter: Adapter;
  /** `[...prefix, program, ...args]` does what the user's command does. */
  readonly line: CommandLine;
}

/** Programs that run the rest of their line. `skip`: words before it, apart from options. */
const LAUNCHERS: Readonly<Record<string, Grammar & { readonly skip?: number }>> = {
  caffeinate: { one: ["-t", "-w"] },
  env: { one: ["-u", "--unset", "-C", "--chdir"] },
  exec: { one: ["-a"] },
  ionice: { one: ["-c", "-n", "--class", "--classdata"] },
  nice: { one: ["-n", "--adjustment"] },
  nohup: { one: [] },
  setsid: { one: [] },
  stdbuf: { one: ["-i", "-o", "-e", "--input", "--output", "--error"] },
  timeout: { one: ["-k", "-s", "--kill-after", "--signal"], skip: 1 },
};

/** Programs that run a package. `verbs`: the subcommands that do so; null when all of them do. */
const RUNNERS: Readonly<Record<string, { readonly verbs: readonly string[] | null }>> = {
  bun: { verbs: ["x"] },
  bunx: { verbs: null },
  npm: { verbs: ["exec", "x"] },
  npx: { verbs: null },
  pnpm: { verbs: ["dlx", "exec"] },
  pnpx: { verbs: null },
  yarn: { verbs: ["dlx", "exec"] },
};
const RUNNER_OPTIONS: Grammar = { one: ["-p", "--package", "-w", "--workspace", "--registry", "--cache"] };
const NODE_OPTIONS: Grammar = { one: ["-r", "--require", "--import", "--loader", "-C", "--conditions"] };
const SHELLS = ["sh", "bash", "dash", "zsh", "ksh"];
/** Limit for command lines nested in command lines. */
const MAX_DEPTH = 5;

export function recognize(command: readonly string[], adapters: readonly Adapter[]): Recognized | undefined {
  return find(command, [], adapters, MAX_DEPTH);
}

function find(
  command: readonly string[],
  prefix: readonly string[],
  adapters: readonly Adapter[],
  depth: number,
): Recognized | undefined {
  const [program, ...args] = command;
  if (program === undefined || depth === 0) return undefined;
  const name = basename(program);
  const adapter =
    adapters.find(({ programs }) => programs.includes(name)) ?? inNodeModules(program, adapters);
  if (adapter !== undefined) return { adapter, line: { prefix, program, args } };
  /** The rest of the line from there on, if there is one. */
  const after = (at: number | undefined) =>
    at === undefined || at >= args.length
      ? undefined
      : find(args.slice(at), [...prefix, program, ...args.slice(0, at)], adapters, depth - 1);
  if (SHELLS.includes(name)) return findInShell(command, prefix, adapters, depth);
  if (Object.hasOwn(LAUNCHERS, name)) return after(launched(args, LAUNCHERS[name]!));
  if (Object.hasOwn(RUNNERS, name)) return findPackage(command, prefix, adapters);
  if (name === "node" || name === "nodejs" || name === "bun" || name === "deno") {
    const at = nthPositional(args, NODE_OPTIONS, 0);
    const script = at === undefined ? undefined : inNodeModules(args[at]!, adapters);
    if (script === undefined) return undefined;
    const line = {
      prefix: [...prefix, program, ...args.slice(0, at)],
      program: args[at!]!,
      args: args.slice(at! + 1),
    };
    return { adapter: script, line };
  }
  return undefined;
}

/** The index of the program that a launcher runs. `env` has assignments before it. */
function launched(
  args: readonly string[],
  { skip = 0, ...grammar }: Grammar & { readonly skip?: number },
): number | undefined {
  const start = nthPositional(args, grammar, skip);
  if (start === undefined) return undefined;
  const program = args.slice(start).findIndex((word) => !/^[A-Za-z_]\w*=/.test(word));
  return program === -1 ? undefined : start + program;
}

function nthPositional(args: readonly string[], grammar: Grammar, skip: number): number | undefined {
  // Word by word: what follows the program are the program's options.
  const first: number[] = [];
  for (let at = 0; at < args.length && first.length <= skip; at += 1) {
    const { role } = readWords(args.slice(0, at + 1), grammar).at(-1)!;
    if (role === "positional") first.push(at);
  }
  return first[skip];
}

/** `npx --yes @scope/name@1.2 …`, `npx -p @scope/name bin …`, `pnpm dlx name …` */
function findPackage(
  command: readonly string[],
  prefix: readonly string[],
  adapters: readonly Adapter[],
): Recognized | undefined {
  const [program, ...args] = command;
  const { verbs } = RUNNERS[basename(program!)]!;
  const verb = verbs === null ? undefined : nthPositional(args, RUNNER_OPTIONS, 0);
  if (verbs !== null && (verb === undefined || !verbs.includes(args[verb]!))) return undefined;
  const at = nthPositional(args, RUNNER_OPTIONS, verb === undefined ? 0 : 1);
  if (at === undefined) return undefined;
  const name = args[at]!.replace(/(?<=.)@[^/]*$/, "");
  const adapter = adapters.find(
    ({ programs, packages }) => packages.includes(name) || programs.includes(name),
  );
  if (adapter === undefined) return undefined;
  return {
    adapter,
    line: {
      prefix: [...prefix, program!, ...args.slice(0, at)],
      program: args[at]!,
      args: args.slice(at + 1),
    },
  };
}

/** `sh -c LINE` becomes `sh -c 'exec "$0" "$@"' PROGRAM ARGS…`: profile and assignments take effect as before. */
function findInShell(
  command: readonly string[],
  prefix: readonly string[],
  adapters: readonly Adapter[],
  depth: number,
): Recognized | undefined {
  const [shell, ...args] = command;
  const at = args.findIndex((word) => !/^-[a-z]+$/.test(word));
  const flags = args.slice(0, at);
  if (at !== args.length - 1 || !flags.at(-1)?.includes("c")) return undefined;
  const simple = parseSimpleCommand(args[at]!);
  if (simple === undefined) return undefined;
  const { assignments, words } = simple;
  const run = `${assignments === "" ? "" : `${assignments} `}exec "$0" "$@"`;
  return find(words, [...prefix, shell!, ...flags, run], adapters, depth - 1);
}

function inNodeModules(path: string, adapters: readonly Adapter[]): Adapter | undefined {
  return adapters.find(({ packages }) => packages.some((name) => path.includes(`/node_modules/${name}/`)));
}
