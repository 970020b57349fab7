// A hermetic environment for the real command line: its own HOME, LAZARUS_HOME, working directory and time zone, and no
// colors. Output is compared as a whole; only paths, times and pids are replaced by placeholders.
import { type SpawnSyncOptions, spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { runLine } from "../../src/cli/dispatch.ts";
import { systemMachine } from "../../src/platform/machine.ts";
import { plainNode, plainUser, publicCopy } from "../plain-user.ts";

/** The built checkout under test: the copy made by the global setup. */
export const BUILT = process.env.LAZARUS_TEST_COPY ?? join(import.meta.dirname, "..", "..");
export const LAUNCHER = join(BUILT, "bin", "lazarus.js");
const PLAIN_LAUNCHER = join(publicCopy() ?? BUILT, "bin", "lazarus.js");

/** One compile cache for all worlds; a cache in each world's home would always be cold. */
export const COMPILE_CACHE: Readonly<Record<string, string>> =
  process.env.NODE_COMPILE_CACHE === undefined ? {} : { NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE };

export interface Ending {
  readonly exit: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface RunOptions extends Pick<SpawnSyncOptions, "timeout"> {
  /** Run as an unprivileged user; `giveToPlainUser` gives them the world. */
  readonly asPlainUser?: boolean;
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  readonly node?: string;
  readonly nodeOptions?: readonly string[];
}

export interface World extends Disposable {
  readonly directory: string;
  readonly home: string;
  readonly missions: string;
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Runs a command line; returns its output unchanged. */
  run(words: readonly string[], options?: RunOptions): Ending;
  /** Runs a command line in this process, with the same environment: for commands whose process does not matter. */
  call(words: readonly string[], options?: Pick<RunOptions, "cwd">): Promise<Ending>;
  /** The whole result as one text, for snapshots: `world.show("scan --json")`. */
  show(line: string, options?: RunOptions): string;
  /** Runs a shell script in which `lazarus` is our command. */
  shell(script: string, program?: string): Ending;
  json(line: string): Record<string, unknown>;
  path(...parts: string[]): string;
  write(path: string, content: string): string;
  read(path: string): string;
}

export function createWorld(): World {
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "lazarus-cli-")));
  const home = join(directory, "home");
  const cwd = join(directory, "cwd");
  const bin = join(directory, "bin");
  for (const path of [home, cwd, bin, join(directory, "user")]) mkdirSync(path);
  // For shells: a `lazarus` command with the same Node and launcher.
  // An agent of a plain user must be able to run it.
  writeFileSync(join(bin, "lazarus"), `#!/bin/sh\nexec "${plainNode()}" "${PLAIN_LAUNCHER}" "$@"\n`, {
    mode: 0o755,
  });
  const env = {
    HOME: join(directory, "user"),
    LAZARUS_HOME: home,
    PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`,
    TZ: "UTC",
    LC_ALL: "C",
    NO_COLOR: "1",
    ...COMPILE_CACHE,
  };
  const spawn = (program: string, args: readonly string[], options: RunOptions = {}): Ending => {
    const { status, stdout, stderr, error } = spawnSync(program, args, {
      cwd: options.cwd ?? cwd,
      env: { ...env, ...options.env },
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
      maxBuffer: 2 ** 28,
      timeout: options.timeout ?? 10 * 60_000,
      ...(options.asPlainUser ? plainUser() : {}),
    });
    if (error) throw error;
    return { exit: status, stdout, stderr };
  };
  const run: World["run"] = (words, options = {}) => {
    const node = options.asPlainUser ? plainNode() : process.execPath;
    const launcher = options.asPlainUser ? PLAIN_LAUNCHER : LAUNCHER;
    return spawn(options.node ?? node, [...(options.nodeOptions ?? []), launcher, ...words], options);
  };
  const normal = (text: string) => normalize(text, directory);
  return {
    directory,
    home,
    missions: join(home, "missions"),
    cwd,
    env,
    run,
    async call(words, options = {}) {
      const output = { stdout: "", stderr: "" };
      const exit = await runLine(words, {
        machine: systemMachine,
        callerPid: process.pid,
        surroundings: { env, cwd: options.cwd ?? cwd, isRoot: process.getuid?.() === 0 },
        terminal: {
          out: (text) => {
            output.stdout += typeof text === "string" ? text : Buffer.from(text).toString();
          },
          err: (text) => {
            output.stderr += typeof text === "string" ? text : Buffer.from(text).toString();
          },
          isInteractive: false,
          outIsTerminal: false,
          errIsTerminal: false,
          columns: 80,
        },
        signal: () => new AbortController().signal,
      });
      return { exit, ...output };
    },
    show(line, options) {
      const { exit, stdout, stderr } = run(split(line), options);
      const parts = [`exit ${exit}`];
      if (stdout !== "") parts.push(`── stdout\n${normal(stdout).trimEnd()}`);
      if (stderr !== "") parts.push(`── stderr\n${normal(stderr).trimEnd()}`);
      return `${parts.join("\n")}\n`;
    },
    shell: (script, program = "/bin/sh") => spawn(program, ["-c", script]),
    json(line) {
      const { stdout } = run(split(line));
      return JSON.parse(stdout);
    },
    path: (...parts) => join(directory, ...parts),
    write(path, content) {
      const file = join(directory, path);
      mkdirSync(dirname(file), { recursive: true });
      writeFileSync(file, content);
      return file;
    },
    read: (path) => readFileSync(join(directory, path), "utf8"),
    [Symbol.dispose]() {
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

/** Splits at spaces; 'single quotes' keep a word together. */
function split(line: string): string[] {
  return [...line.matchAll(/'([^']*)'|(\S+)/g)].map(([, quoted, plain]) => quoted ?? plain ?? "");
}

function normalize(text: string, directory: string): string {
  return text
    .replaceAll(directory, "<world>")
    .replaceAll(BUILT, "<lazarus>")
    .replaceAll(/\/\S*\/lazarus-demo-\w+/g, "<demo>")
    .replaceAll(/\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?Z/g, "<time>")
    .replaceAll(/"(timestamp|created_at|last_timestamp)":\d+(\.\d+)?/g, '"$1":<seconds>')
    .replaceAll(/"time_ms":\d+/g, '"time_ms":<ms>')
    .replaceAll(process.versions.node, "<node>")
    .replaceAll(/git version [\d.]+/g, "git version <git>");
}
