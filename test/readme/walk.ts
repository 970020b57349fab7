// Runs the README's commands as a new user: an empty home, one shell, `lazarus` on the PATH, the library installed.
import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, realpathSync, rmSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { COMPILE_CACHE } from "../cli/hermetic.ts";
import type { Block } from "./transcript.ts";

/** The reader's home as the README shows it. */
export const SHOWN_HOME = "/home/you";

const MODULES = join(import.meta.dirname, "..", "..", "node_modules");

/** The same blocks with the output that the commands print now. */
export async function walkReadme(blocks: readonly Block[], checkout: string): Promise<Block[]> {
  const world = realpathSync(mkdtempSync(join(tmpdir(), "lazarus-readme-")));
  const home = join(world, "you");
  const bin = join(world, "bin");
  for (const path of [home, bin, join(home, "node_modules")]) mkdirSync(path);
  const program = (name: string, words: string) =>
    writeFileSync(join(bin, name), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
  program("node", `"${process.execPath}"`);
  program("lazarus", `"${process.execPath}" "${join(checkout, "bin", "lazarus.js")}"`);
  symlinkSync(checkout, join(home, "node_modules", "lazarus"));
  symlinkSync(join(MODULES, "ai"), join(home, "node_modules", "ai"));
  const show = (output: string) =>
    output
      .replaceAll(home, SHOWN_HOME)
      .replaceAll(`${bin}:`, "")
      .replaceAll(process.execPath, "/usr/bin/node")
      .replaceAll(checkout, "/usr/lib/node_modules/lazarus")
      // A shell without a terminal prints more.
      .replaceAll(/^bash: line \d+: +\d+ Killed.*$/gm, "Killed");
  const shell = openShell(home, {
    HOME: home,
    PATH: `${bin}:/usr/local/bin:/usr/bin:/bin`,
    TZ: "UTC",
    LC_ALL: "C",
    NO_COLOR: "1",
    COLUMNS: "100",
    GIT_CONFIG_GLOBAL: "/dev/null",
    ...COMPILE_CACHE,
  });
  try {
    const walked: Block[] = [];
    for (const block of blocks) {
      if (block.kind === "file") writeFileSync(join(home, block.name), block.text);
      if (block.kind !== "console") {
        walked.push(block);
        continue;
      }
      const typed = [];
      for (const { command } of block.typed) {
        const output = await shell.type(command);
        await waitForLog(home, command);
        typed.push({ command, output: show(output) });
      }
      walked.push({ kind: "console", typed });
    }
    return walked;
  } finally {
    await shell.close();
    rmSync(world, { recursive: true, force: true, maxRetries: 5 });
  }
}

const COMMAND_LIMIT_MS = 300_000;

/** Waits until a background command has written to its log, which it has before a person types the next command. */
async function waitForLog(home: string, command: string): Promise<void> {
  const [, log] = / > (\S+) 2>&1 &$/.exec(command) ?? [];
  if (log === undefined) return;
  const deadline = performance.now() + COMMAND_LIMIT_MS;
  while (!statSync(join(home, log), { throwIfNoEntry: false })?.size) {
    if (performance.now() > deadline) throw new Error(`no output in ${log} from: ${command}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

function openShell(cwd: string, env: Record<string, string>) {
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
  let turn = 0;
  return {
    async type(command: string): Promise<string> {
      turn += 1;
      const mark = `\u0001end of ${turn}\u0001`;
      child.stdin.write(`${command}\nprintf '\\001end of %d\\001' ${turn}\n`);
      const late = setTimeout(() => child.kill("SIGKILL"), COMMAND_LIMIT_MS);
      while (!printed.includes(mark)) {
        if (child.exitCode !== null || child.signalCode !== null)
          throw new Error(`the shell exited at: ${command}\n${printed}`);
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      clearTimeout(late);
      const [output = ""] = printed.split(mark);
      printed = "";
      return output;
    },
    async close(): Promise<void> {
      child.stdin.end("kill $(jobs -p) 2>/dev/null; wait\n");
      await closed;
    },
  };
}
