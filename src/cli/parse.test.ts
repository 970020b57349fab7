// Words into typed input, and every way to get them wrong.
import { describe, expect, it } from "vitest";
import { type AnyCommand, defineCommand } from "./command.ts";
import { parseLine } from "./parse.ts";

const command: AnyCommand = defineCommand({
  about: "",
  positionals: [
    { name: "mission", summary: "" },
    { name: "file", summary: "", optional: true, variadic: true },
  ],
  options: {
    force: { type: "flag", short: "f", summary: "" },
    status: { type: "text", value: "TEXT", summary: "" },
    tag: { type: "texts", summary: "" },
    wait: { type: "number", value: "SECONDS", summary: "" },
    mode: { type: "text", choices: ["fast", "safe"], summary: "" },
  },
  examples: [],
  exits: [],
  run: () => 0,
});
const withRest: AnyCommand = { ...command, positionals: [], passthrough: "words…" };
const parse = (...words: string[]) => parseLine("try", command, words);
const failure = (...words: string[]): string => {
  try {
    parse(...words);
  } catch (error) {
    expect(error).toMatchObject({ code: "USAGE", exitCode: 2, hint: "lazarus try --help" });
    return (error as Error).message;
  }
  throw new Error("nothing was refused");
};

describe("a line", () => {
  it("gives options and positionals by name, each of its type", () => {
    const { input, globals } = parse(
      "m1",
      "a",
      "b",
      "-f",
      "--status",
      "at work",
      "--wait=1.5",
      "--tag",
      "x",
      "--tag=y",
    );
    expect(input.args).toEqual({ mission: "m1", file: ["a", "b"] });
    expect(input.options).toMatchObject({ force: true, status: "at work", wait: 1.5, tag: ["x", "y"] });
    expect(globals).toMatchObject({ json: false, quiet: false, help: false, config: undefined });
  });

  it("has false, an empty list or nothing for what was left out", () => {
    expect(parse("m1").input.options).toMatchObject({
      force: false,
      tag: [],
      status: undefined,
      wait: undefined,
    });
  });

  it("takes the global options anywhere", () => {
    expect(parse("--json", "m1", "-q", "--config", "c.json").globals).toMatchObject({
      json: true,
      quiet: true,
      config: "c.json",
    });
  });

  it("takes words that look like options after --", () => {
    expect(parse("--", "-m", "--json").input.args).toEqual({ mission: "-m", file: ["--json"] });
  });

  it("hands everything after -- to a command that passes it on", () => {
    expect(parseLine("try", withRest, ["--json", "--", "scan", "--", "--x"])).toMatchObject({
      globals: { json: true },
      input: { rest: ["scan", "--", "--x"] },
    });
  });

  it("needs nothing else when help is asked for", () => {
    expect(parse("--help").globals.help).toBe(true);
  });
});

describe("a wrong line says", () => {
  it.each([
    [["m1", "--staus", "x"], 'lazarus try has no option "--staus"; did you mean --status?'],
    [["m1", "--frobnicate"], 'lazarus try has no option "--frobnicate"'],
    [["m1", "-x"], 'lazarus try has no option "-x"'],
    [["m1", "--constructor"], 'lazarus try has no option "--constructor"'],
    [["m1", "--__proto__=1"], 'lazarus try has no option "--__proto__"'],
    [["m1", "--no-json"], 'lazarus try has no option "--no-json"'],
    [["m1", "--status"], "--status needs a value: --status TEXT"],
    [["m1", "--force=yes"], "--force takes no value"],
    [["m1", "--wait", "soon"], '--wait is "soon"; it takes a number, 0 or more'],
    [["m1", "--wait=-1"], '--wait is "-1"; it takes a number, 0 or more'],
    [["m1", "--wait", ""], '--wait is ""; it takes a number, 0 or more'],
    [["m1", "--wait", "Infinity"], '--wait is "Infinity"; it takes a number, 0 or more'],
    [["m1", "--mode", "quick"], '--mode is "quick"; it takes one of fast, safe'],
    [[], "lazarus try needs a mission"],
    [["m1", "--\x1b[2J"], 'lazarus try has no option "--\\u001b[2J"'],
  ])("%j: %s", (words, message) => {
    expect(failure(...words)).toBe(message);
  });

  it("that there is a word too many", () => {
    const one = { ...command, positionals: [{ name: "mission", summary: "" }] };
    expect(() => parseLine("try", one, ["m1", "m2"])).toThrow(
      'lazarus try does not know what to do with "m2"',
    );
  });
});
