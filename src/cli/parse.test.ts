// Parsing of command lines, and every kind of usage error.
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
  throw new Error("expected a usage error");
};

describe("parseLine", () => {
  it("returns options and arguments by name, each with its type", () => {
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

  it("uses false, an empty list or undefined for missing options", () => {
    expect(parse("m1").input.options).toMatchObject({
      force: false,
      tag: [],
      status: undefined,
      wait: undefined,
    });
  });

  it("accepts global options anywhere", () => {
    expect(parse("--json", "m1", "-q", "--config", "c.json").globals).toMatchObject({
      json: true,
      quiet: true,
      config: "c.json",
    });
  });

  it("accepts words that look like options after --", () => {
    expect(parse("--", "-m", "--json").input.args).toEqual({ mission: "-m", file: ["--json"] });
  });

  it("passes everything after -- through, for commands that run another program", () => {
    expect(parseLine("try", withRest, ["--json", "--", "scan", "--", "--x"])).toMatchObject({
      globals: { json: true },
      input: { rest: ["scan", "--", "--x"] },
    });
  });

  it("does not require arguments with --help", () => {
    expect(parse("--help").globals.help).toBe(true);
  });
});

describe("usage errors", () => {
  it.each([
    [["m1", "--staus", "x"], 'unknown option "--staus"; did you mean --status?'],
    [["m1", "--frobnicate"], 'unknown option "--frobnicate"'],
    [["m1", "-x"], 'unknown option "-x"'],
    [["m1", "--constructor"], 'unknown option "--constructor"'],
    [["m1", "--__proto__=1"], 'unknown option "--__proto__"'],
    [["m1", "--no-json"], 'unknown option "--no-json"'],
    [["m1", "--status"], "option --status needs a value: --status TEXT"],
    [["m1", "--force=yes"], "option --force takes no value"],
    [["m1", "--wait", "soon"], 'invalid value "soon" for --wait; expected a number, 0 or more'],
    [["m1", "--wait=-1"], 'invalid value "-1" for --wait; expected a number, 0 or more'],
    [["m1", "--wait", ""], 'invalid value "" for --wait; expected a number, 0 or more'],
    [["m1", "--wait", "Infinity"], 'invalid value "Infinity" for --wait; expected a number, 0 or more'],
    [["m1", "--mode", "quick"], 'invalid value "quick" for --mode; expected one of: fast, safe'],
    [[], "missing argument: mission"],
    [["m1", "--\x1b[2J"], 'unknown option "--\\u001b[2J"'],
  ])("%j: %s", (words, message) => {
    expect(failure(...words)).toBe(message);
  });

  it("refuse an extra argument", () => {
    const one = { ...command, positionals: [{ name: "mission", summary: "" }] };
    expect(() => parseLine("try", one, ["m1", "m2"])).toThrow('unexpected argument "m2"');
  });
});
