// Runs the README's commands as a new user: an empty home, one shell that starts in the clone, and npm with its own
// prefix and registry.
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join, resolve } from "node:path";
import { COMPILE_CACHE } from "../cli/hermetic.ts";
import { openRegistry } from "./registry.ts";
import type { Block, Typed } from "./transcript.ts";

/** The reader's home as the README shows it. */
export const SHOWN_HOME = "/home/you";

/** Commands in the clone that are not typed: it is already installed, this is its test, and demo.test.ts runs `npm start`. */
const NOT_TYPED = /^git clone |^cd lazarus$|^npm (?:install|ci|start|test)$/;

interface World {
  readonly home: string;
  readonly env: Readonly<Record<string, string>>;
  /** Output with the paths of a usual machine. */
  show(output: string): string;
}

/**
 * Returns the blocks with the output that the commands print now. `inspect` sees the reader's home at the end, with all
 * the files that the README created.
 */
export async function walkReadme(
  blocks: readonly Block[],
  checkout: string,
  inspect: (home: string) => void = () => {},
): Promise<Block[]> {
  await using registry = await openRegistry();
  const directory = realpathSync(mkdtempSync(join(tmpdir(), "lazarus-readme-")));
  const world = createWorld(directory, checkout, registry.url);
  const shell = openShell(checkout, world.env);
  try {
    const walked: Block[] = [];
    for (const block of blocks) walked.push(await walkBlock(block, shell, world));
    inspect(world.home);
    return walked;
  } finally {
    await shell.close();
    rmSync(directory, { recursive: true, force: true, maxRetries: 5 });
  }
}

function createWorld(directory: string, checkout: string, registry: string): World {
  const home = join(directory, "you");
  const bin = join(directory, "bin");
  const prefix = join(directory, "npm");
  for (const path of [home, bin, prefix]) mkdirSync(path);
  const program = (name: string, path: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\nexec "${path}" "$@"\n`, { mode: 0o755 });
  program("node", process.execPath);
  program("npm", findProgram("npm"));
  const env = {
    HOME: home,
    PATH: `${bin}:${join(prefix, "bin")}:/usr/local/bin:/usr/bin:/bin`,
    TZ: "UTC",
    LC_ALL: "C",
    NO_COLOR: "1",
    COLUMNS: "100",
    GIT_CONFIG_GLOBAL: "/dev/null",
    npm_config_prefix: prefix,
    npm_config_registry: registry,
    npm_config_audit: "false",
    npm_config_update_notifier: "false",
    ...COMPILE_CACHE,
  };
  const show = (output: string) =>
    output
      .replaceAll(home, SHOWN_HOME)
      .replaceAll(`${bin}:${prefix}/bin:`, "")
      .replaceAll(process.execPath, "/usr/bin/node")
      .replaceAll(prefix, "/usr")
      .replaceAll(checkout, "/usr/lib/node_modules/lazarus")
      // A shell without a terminal prints more.
      .replaceAll(/^bash: line \d+: +\d+ Killed.*$/gm, "Killed");
  return { home, env, show };
}

function findProgram(name: string): string {
  const places = (process.env.PATH ?? "").split(delimiter).map((place) => join(place, name));
  const found = places.find((place) => existsSync(place));
  if (found === undefined) throw new Error(`${name} is not on the PATH`);
  return found;
}

async function walkBlock(block: Block, shell: Shell, { home, show }: World): Promise<Block> {
  if (block.kind === "prose") return block;
  if (block.kind === "file") {
    writeFileSync(resolve(await shell.cwd(), block.name.replace(/^~/, home)), block.text);
    return block;
  }
  if (block.kind === "commands") {
    const commands = block.text.split("\n").map((line) => line.replace(/\s*(?:#.*)?$/, ""));
    for (const command of commands.filter((command) => command !== "" && !NOT_TYPED.test(command))) {
      const { output, status } = await shell.type(command);
      if (status !== 0) throw new Error(`exit code ${status} from: ${command}\n${output}`);
    }
    return block;
  }
  const typed: Typed[] = [];
  for (const { command } of block.typed) {
    const { output } = await shell.type(command);
    await waitForLog(await shell.cwd(), command);
    typed.push({ command, output: show(output) });
  }
  return { kind: "console", typed };
}

const COMMAND_LIMIT_MS = 300_000;

/** Waits until a background command has written to its log, as it would have before a person types the next command. */
async function waitForLog(cwd: string, command: string): Promise<void> {
  const [, log] = / > (\S+) 2>&1 &$/.exec(command) ?? [];
  if (log === undefined) return;
  const deadline = performance.now() + COMMAND_LIMIT_MS;
  while (!statSync(join(cwd, log), { throwIfNoEntry: false })?.size) {
    if (performance.now() > deadline) throw new Error(`no output in ${log} from: ${command}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

interface Shell {
  type(command: string): Promise<{ readonly output: string; readonly status: number }>;
  cwd(): Promise<string>;
  close(): Promise<void>;
}

function openShell(cwd: string, env: Readonly<Record<string, string>>): Shell {
  const child = spawn("bash", ["--norc", "--noprofile"], { cwd, env, stdio: ["pipe", "pipe", "inherit"] });
  let printed = "";
  let wake = () => {};
  const closed = new Promise<void>((resolve) =>
    child.on("close", () => {
      resolve();
      wake();
    }),
  );
  child.stdin.write("exec 2>&1\n");
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    printed += text;
    wake();
  });
  const type: Shell["type"] = async (command) => {
    child.stdin.write(`${command}\nprintf '\\001%d\\001' $?\n`);
    const late = setTimeout(() => child.kill("SIGKILL"), COMMAND_LIMIT_MS);
    let end: RegExpExecArray | null = null;
    for (;;) {
      end = /\u0001(\d+)\u0001/.exec(printed);
      if (end !== null) break;
      if (child.exitCode !== null || child.signalCode !== null)
        throw new Error(`the shell exited at: ${command}\n${printed}`);
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
    clearTimeout(late);
    const output = printed.slice(0, end.index);
    printed = "";
    return { output, status: Number(end[1]) };
  };
  return {
    type,
    cwd: async () => (await type("pwd")).output.trimEnd(),
    async close() {
      child.stdin.end("kill $(jobs -p) 2>/dev/null; wait\n");
      await closed;
    },
  };
}
