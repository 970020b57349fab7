// Help is rendered from the commands' data: it fits the screen, is complete, and its examples parse.
import { describe, expect, it } from "vitest";
import { ERROR_KINDS } from "../platform/errors.ts";
import { CATALOGUE } from "./catalogue.ts";
import { findCommand } from "./find-command.ts";
import { commandHelp, overview, wrap } from "./help.ts";
import { GLOBAL_OPTIONS, parseLine } from "./parse.ts";

const names = Object.keys(CATALOGUE);
const load = async (name: string) => (await CATALOGUE[name]!.load()).command;

describe("the overview", () => {
  it("lists every command that is not hidden, subcommands on the line of their first word, and fits a screen", () => {
    const text = overview("1.2.3");
    const also = new Set(
      [...text.matchAll(/^ {2}also +(.*?)\n\n/gms)].flatMap(([, rare]) =>
        rare!.replaceAll(/\s+/g, " ").split(", "),
      ),
    );
    for (const [name, { hidden, rare, summary }] of Object.entries(CATALOGUE)) {
      const [first, second] = name.split(" ");
      const line = text.split("\n").find((each) => each.trimStart().startsWith(`${name} `));
      const family =
        second === undefined ? -1 : text.search(new RegExp(`^ {2}${first} … [^:]*\\b${second}\\b`, "m"));
      if (hidden) expect(line).toBeUndefined();
      else if (rare) expect(also).toContain(name);
      else if (line !== undefined) expect(line).toContain(summary.slice(0, 20));
      else expect(family, name).toBeGreaterThan(0);
    }
    for (const line of text.split("\n")) expect(line.length).toBeLessThanOrEqual(80);
    expect(text.split("\n").length).toBeLessThanOrEqual(60);
  });
});

describe.each(names)("help of %s", (name) => {
  it("fits 80 columns, except for example lines, which must not be broken", async () => {
    const command = await load(name);
    const examples = new Set(command.examples.map(([line]) => `  ${line}`));
    for (const line of commandHelp(name, command).split("\n")) {
      if (!examples.has(line)) expect(line.length, line).toBeLessThanOrEqual(80);
    }
  });

  it("shows usage, every option, an example and the exit codes", async () => {
    const command = await load(name);
    const text = commandHelp(name, command);
    expect(text).toContain(`Usage: lazarus ${name}`);
    for (const key of Object.keys({ ...command.options, ...GLOBAL_OPTIONS }))
      expect(text).toContain(`--${key}`);
    expect(command.examples.length).toBeGreaterThan(0);
    for (const kind of command.exits) expect(text).toContain(ERROR_KINDS[kind].meaning.slice(0, 30));
  });

  it("has examples that parse", async () => {
    const command = await load(name);
    for (const [line] of command.examples) {
      const calls = callsOf(line);
      expect(calls.length, line).toBeGreaterThan(0);
      for (const words of calls) {
        const found = findCommand(CATALOGUE, words);
        expect(found, line).toBeDefined();
        const called = (await found!.entry.load()).command;
        expect(() => parseLine(found!.name, called, found!.rest), line).not.toThrow();
      }
    }
  });
});

/** The calls of lazarus in a line of shell: their words, without quotes. */
function callsOf(line: string): string[][] {
  const inner = [...line.matchAll(/\$\(([^)]*)\)/g)].flatMap(([, script = ""]) => callsOf(script));
  const words = line.match(/(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s"'])+/g) ?? [];
  const calls: string[][] = [];
  let call: string[] | undefined;
  for (const word of words) {
    if (/^(\||\|\||&&|;|<|>|>>)$/.test(word)) call = undefined;
    else if (call !== undefined) call.push(word.replaceAll(/["']/g, ""));
    else if (word === "lazarus") {
      call = [];
      calls.push(call);
    }
  }
  return [...inner, ...calls];
}

it("wraps text at words", () => {
  expect(wrap("one two three", 7)).toEqual(["one two", "three"]);
  expect(wrap("unbreakable", 3)).toEqual(["unbreakable"]);
  expect(wrap("")).toEqual([]);
});
