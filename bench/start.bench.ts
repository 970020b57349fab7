// Start-up time of each command, up to its help text, and of each entry point of the library, against an empty Node.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { CATALOGUE } from "../src/cli/catalogue.ts";
import { type Bench, type Contest, runProgram } from "./harness.ts";

const ROOT = join(import.meta.dirname, "..");
const LAUNCHER = join(ROOT, "bin", "lazarus.js");
const ROUNDS = 21;

export const bench: Bench = {
  about: `What each lazy chunk costs: \`lazarus <command> --help\` loads the command with everything it imports, and
\`import(…)\` loads an entry point of the library with its dependencies. The peer is the same Node with an empty script.`,
  prepare(directory) {
    const env = { HOME: directory, LAZARUS_HOME: join(directory, "home"), PATH: process.env.PATH ?? "" };
    const node = (...words: string[]) => runProgram(process.execPath, words, { env, cwd: directory });
    const peer = { name: "node -e 0", run: () => node("-e", "0") };
    const contest = (name: string, run: () => unknown): Contest => ({
      name,
      rounds: ROUNDS,
      ours: { name, run },
      peer,
    });
    const { exports } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    const entries = Object.entries(exports as Record<string, { default?: string }>).filter(
      ([, { default: file }]) => file !== undefined,
    );
    return [
      ...["--version", "--help"].map((word) => contest(`lazarus ${word}`, () => node(LAUNCHER, word))),
      ...Object.keys(CATALOGUE)
        .filter((name) => !CATALOGUE[name]!.hidden)
        .map((name) => contest(`lazarus ${name} --help`, () => node(LAUNCHER, ...name.split(" "), "--help"))),
      ...entries.map(([name, { default: file }]) => {
        const url = pathToFileURL(join(ROOT, file!)).href;
        return contest(`import lazarus${name.slice(1)}`, () =>
          node("--input-type=module", "-e", `await import(${JSON.stringify(url)})`),
        );
      }),
    ];
  },
};
