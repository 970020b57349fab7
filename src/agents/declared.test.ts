// Agents that a user declares in the config.
import { describe, expect, it } from "vitest";
import { memoryReader } from "../../test/agents/memory-reader.ts";
import { allAdapters } from "./adapters.ts";
import { declaredAdapters, findUnknownAgentKeys } from "./declared.ts";
import { recognize } from "./recognize.ts";

const PLACE = { cwd: "/home/Ann/app", home: "/home/Ann", env: {} };
const declare = (section: object) => declaredAdapters({ agents: { mybot: section } }, "/c.json")[0]!;
const mybot = declare({
  programs: ["mybot", "mybot.sh"],
  start: ["--session", "{session}", "{args}"],
  resume: ["{args}", "--continue", "{session}", "--prompt={note}"],
  session_pattern: "session: (\\S+)",
  session_files: ["~/.mybot/{cwd}/{session}.jsonl", "~/.mybot/{cwd}/{session}.*.json"],
  quota_patterns: ["^quota"],
});

it("is found by its program, before a built-in one", () => {
  expect(recognize(["nice", "/opt/mybot.sh", "go"], allAdapters([mybot]))?.adapter.name).toBe("mybot");
  const own = declaredAdapters({ agents: { mine: { programs: ["claude"] } } }, undefined);
  expect(recognize(["claude", "x"], allAdapters(own))?.adapter.name).toBe("mine");
});

it("starts and resumes as declared; a value never becomes a separate word", () => {
  expect(mybot.sessionIds).toBe("chosen");
  expect(mybot.start(["-v", "go"], "s1")).toEqual(["--session", "s1", "-v", "go"]);
  expect(mybot.resume(["-v"], "s1", "a b {session}")).toEqual([
    "-v",
    "--continue",
    "s1",
    "--prompt=a b {session}",
  ]);
  for (const id of ["--help", "../x", "a b", ""]) expect(mybot.resume([], id, "x")).toBeNull();
});

it("starts over when no resume line is declared", () => {
  const plain = declare({});
  expect(plain.programs).toEqual(["mybot"]);
  expect(plain.sessionIds).toBe("found");
  expect(plain.resume(["x"], "s1", "note")).toBeNull();
  expect(plain.restart(["x"], null, "note")).toEqual(["x"]);
});

it("finds its files and their places", () => {
  const reader = memoryReader({
    "/home/Ann/.mybot/-home-Ann-app/s1.jsonl": {},
    "/home/Ann/.mybot/-home-Ann-app/s1.meta.json": {},
    "/home/Ann/.mybot/-home-Ann-app/s2.jsonl": {},
  });
  const files = mybot.sessionFiles(PLACE, "s1", reader);
  expect(files.map(({ name, kind }) => [name, kind])).toEqual([
    ["s1.jsonl", "lines"],
    ["s1.meta.json", "whole"],
  ]);
  for (const { name, path } of files) expect(mybot.pathOf(PLACE, "s1", name, reader)).toBe(path);
  for (const name of ["s2.jsonl", "../s1.jsonl", "s1.x/y.json"])
    expect(mybot.pathOf(PLACE, "s1", name, reader)).toBeNull();
});

it("names its session in its output", () => {
  expect(mybot.sessionInOutput?.("session: abc-1")).toBe("abc-1");
  expect(mybot.sessionInOutput?.("session: ../x")).toBeNull();
});

describe("a wrong declaration", () => {
  it.each([
    [{ agents: [] }, "agents is not an object"],
    [{ agents: { mybot: { resume: "x" } } }, "agents.mybot.resume is not a list of words"],
    [
      { agents: { mybot: { quota_patterns: ["("] } } },
      "agents.mybot.quota_patterns is not a list of regular",
    ],
    [{ agents: { mybot: { session_files: ["x/{session}"] } } }, "agents.mybot.session_files is not"],
    [{ agents: { mybot: { session_files: ["/x/../{session}"] } } }, "agents.mybot.session_files is not"],
    [{ agents: { mybot: { session_files: ["/etc/passwd"] } } }, "agents.mybot.session_files is not"],
    [{ agents: { "My Bot": {} } }, "agents.My Bot is not a name"],
  ])("%j", (document, message) => {
    expect(() => declaredAdapters(document, "/c.json")).toThrow(message);
  });

  it("reports keys that are not used", () => {
    expect(findUnknownAgentKeys({ agents: { mybot: { program: ["x"] } } }, "/c.json")).toEqual([
      '/c.json: agents.mybot: unknown key "program" is not used',
    ]);
  });
});
