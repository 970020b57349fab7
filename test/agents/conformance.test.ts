// One suite for all adapters. A new adapter adds a file to cases/ and recorded transcripts to golden/.
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { PATTERN_CLASSES, type TranscriptText } from "../../src/agents/adapter.ts";
import { BUILT_IN } from "../../src/agents/adapters.ts";
import { recognize } from "../../src/agents/recognize.ts";
import { type AdapterCases, PLACE } from "./cases/case.ts";
import { memoryReader } from "./memory-reader.ts";

const folder = new URL("cases/", import.meta.url);
const all: AdapterCases[] = [];
for (const name of readdirSync(folder).filter((each) => each !== "case.ts"))
  all.push(((await import(new URL(name, folder).href)) as { cases: AdapterCases }).cases);

const GOLDEN = new URL("golden/", import.meta.url).pathname;
const COMMAND = ["/opt/node", "/opt/lazarus/bin/lazarus.js", "hook"];

/** The files of a recorded session, in the order of `sessionFiles`: the main one is not in a directory. */
function readGolden(adapter: string, name: string): TranscriptText[] {
  const directory = join(GOLDEN, adapter, name);
  return readdirSync(directory, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .sort((a, b) => a.split("/").length - b.split("/").length || a.localeCompare(b))
    .map((path) => ({ name: path.slice(directory.length + 1), text: readFileSync(path, "utf8") }));
}

test("every adapter has cases", () => {
  expect(all.map(({ adapter }) => adapter.name).sort()).toEqual(BUILT_IN.map(({ name }) => name).sort());
});

describe.each(all.map((cases) => [cases.adapter.name, cases] as const))("%s", (name, cases) => {
  const { adapter, session } = cases;
  const reader = memoryReader(cases.disk);

  describe("command line", () => {
    test.each([...adapter.programs.map((program) => [program, "x"]), ...cases.commands])(
      "%s %s …",
      (...command) => {
        expect(recognize(command, BUILT_IN)?.adapter.name).toBe(name);
      },
    );

    test.each(cases.parse)("%j", (args, expected) => {
      expect(adapter.parse(args)).toMatchObject(expected);
    });

    test.each(cases.lives)("lives of %j", ({ args, start, resume, restart }) => {
      expect(adapter.start(args, adapter.sessionIds === "chosen" ? session : null)).toEqual(start);
      expect(adapter.resume(args, session, "NOTE")).toEqual(resume);
      expect(adapter.restart(args, adapter.sessionIds === "chosen" ? session : null, "NOTE")).toEqual(
        restart,
      );
    });

    test("a revival resumes the session of its arguments, with the note as the prompt where it takes one", () => {
      for (const { args, resume } of cases.lives.filter((life) => life.resume !== null))
        expect(adapter.parse(resume!)).toMatchObject({
          session: { id: session },
          prompt: adapter.noteDelivery?.(args) ? null : "NOTE",
          isUtility: false,
        });
    });

    test("a note that looks like an option is still the prompt", () => {
      for (const { args, resume } of cases.lives.filter((life) => life.resume !== null)) {
        const revived = adapter.resume(args, session, "--help is what you asked for")!;
        expect(revived).toHaveLength(resume!.length);
        const { prompt } = adapter.parse(revived);
        if (adapter.noteDelivery?.(args)) expect(prompt).toBeNull();
        else expect(prompt).toContain("--help is what you asked for");
      }
    });

    test("a hostile session id is never put on a command line", () => {
      for (const id of [
        "--dangerously-skip-permissions",
        "../../etc/passwd",
        "a b",
        "",
        "$(id)",
        `${session}\n`,
      ]) {
        expect(adapter.isSessionId(id)).toBe(false);
        expect(adapter.resume(cases.lives[0]!.args, id, "NOTE")).toBeNull();
      }
    });
  });

  describe("files", () => {
    test("finds those of the session, under names that map back to their paths", () => {
      const files = adapter.sessionFiles(PLACE, session, reader);
      expect(files.map((file) => file.name)).toEqual(cases.names);
      for (const { path, name: file, kind } of files) {
        expect(Object.keys(cases.disk)).toContain(path);
        // A database that others share is never replaced.
        expect(adapter.pathOf(PLACE, session, file, reader)).toBe(kind === "shared" ? null : path);
      }
    });

    test("finds the directory's new sessions, and no others", () => {
      expect(adapter.findSessions(PLACE, 1000, reader)).toEqual(cases.found);
      expect(adapter.findSessions({ ...PLACE, cwd: "/elsewhere" }, 0, reader)).toEqual([]);
    });

    test("refuses hostile names", () => {
      const names = [
        "",
        "/etc/passwd",
        "../x",
        "a/../../x",
        `${session}.jsonl/../x`,
        `x\0${session}.jsonl`,
        "~/.ssh/id",
      ];
      for (const each of [...names, ...cases.hostileNames])
        expect([each, adapter.pathOf(PLACE, session, each, reader)]).toEqual([each, null]);
    });

    test("refuses hostile session ids", () => {
      for (const id of ["..", "../..", "", "a/b", "*"]) {
        expect(adapter.sessionFiles(PLACE, id, reader)).toEqual([]);
        for (const each of cases.names) expect(adapter.pathOf(PLACE, id, each, reader)).toBeNull();
      }
    });

    test("never counts credentials as files of a session", () => {
      const secret = adapter.credentials.map((each) => join(PLACE.home, each));
      for (const { path } of adapter.sessionFiles(PLACE, session, reader)) expect(secret).not.toContain(path);
    });
  });

  describe("transcript", () => {
    test("has no turns when it is empty", () => {
      const nothing = cases.names.map((file) => ({ name: file, text: "" }));
      expect(adapter.transcript.position(nothing)).toMatchObject({ turn: 0, open: [], isFinished: false });
      expect(adapter.transcript.entries(nothing)).toEqual([]);
    });

    test.each(Object.entries(cases.golden))("recorded: %s", (golden, { openCommands, ...expected }) => {
      const position = adapter.transcript.position(readGolden(name, golden));
      expect(position).toMatchObject(expected);
      if (openCommands !== undefined)
        expect(position.open.map(({ command }) => command)).toEqual(
          openCommands.map((each) => expect.stringContaining(each)),
        );
      expect(adapter.transcript.entries(readGolden(name, golden))[0]).toMatchObject({ role: "user" });
    });

    test.each(Object.keys(cases.golden))("followed line by line: %s", (golden) => {
      const files = readGolden(name, golden);
      const { follow } = adapter.transcript;
      if (follow === undefined) return;
      let followed: ReturnType<typeof follow> | null = null;
      for (const file of files)
        for (const line of file.text.split(/(?<=\n)/)) {
          followed = follow(followed && JSON.parse(JSON.stringify(followed)), [
            { name: file.name, text: line },
          ]);
        }
      expect(followed?.position).toEqual(adapter.transcript.position(files));
    });

    test.each(Object.keys(cases.golden))("cut off anywhere, or damaged: %s", (golden) => {
      const files = readGolden(name, golden);
      const [main] = files;
      const cuts = Array.from({ length: 40 }, (_, index) => Math.floor((main!.text.length * index) / 40));
      for (const at of cuts) {
        const cut = adapter.transcript.position([{ ...main!, text: main!.text.slice(0, at) }]);
        expect(cut.damagedLines).toBe(0);
        expect(cut.turn).toBeLessThanOrEqual(adapter.transcript.position(files).turn);
      }
      const damaged = main!.text.replace("\n", "\n{broken\n\0\0\0\n");
      expect(adapter.transcript.position([{ ...main!, text: damaged }]).damagedLines).toBe(2);
      for (const text of [
        "",
        "null\n[]\n1\n",
        '{"type":"user"}\n{"type":"assistant","message":7}\n{"payload":[]}\n',
      ])
        expect(adapter.transcript.position([{ ...main!, text }]).open).toEqual([]);
    });
  });

  describe("hooks", () => {
    test.each(cases.hooks)("%s", (event, input, expected) => {
      expect(adapter.hooks.parse(event, input)).toEqual(expected);
    });

    test("ignores input of the wrong shape", () => {
      for (const [event] of cases.hooks)
        expect(() => adapter.hooks.parse(event, { session_id: 7, tool_input: [] })).not.toThrow();
      expect(adapter.hooks.parse("Unheard of", {})).toEqual([]);
    });

    test("per run: the files that the arguments name are written", () => {
      // Below root's home: Gemini CLI only reads such a file from there.
      const directory = join("/root", "lazarus", "hooks");
      const setup = adapter.hooks.perRun?.([...COMMAND, name], directory, {});
      if (setup === undefined) return;
      for (const { name: file } of setup.files) expect(file).toMatch(/^(?!\/)(?!.*\.\.)/);
      const all = JSON.stringify(setup);
      if (setup.files.length > 0) expect(all).toContain(directory);
      expect(all).toContain(`lazarus.js`);
    });

    test("the MCP server of a run: the command line still means the same", () => {
      const given = { OPENCODE_CONFIG_CONTENT: JSON.stringify({ model: "m", plugin: ["p"] }) };
      const setup = adapter.mcp?.(["/opt/node", "/opt/lazarus.js", "mcp"], given);
      expect(setup === undefined).toBe(["gemini", "pi", "cline", "openclaw"].includes(name));
      if (setup === undefined) return;
      expect(JSON.stringify(setup)).toMatch(/lazarus.*\/opt\/node.*\/opt\/lazarus\.js.*mcp/);
      for (const [args, expected] of cases.parse)
        expect(adapter.parse([...setup.args, ...args])).toMatchObject(expected);
      const { OPENCODE_CONFIG_CONTENT: content } = setup.env;
      if (content !== undefined) expect(JSON.parse(content)).toMatchObject({ model: "m", plugin: ["p"] });
    });

    test.each([[null], [cases.settings]])("installed twice and removed: %j", (before) => {
      for (const plan of adapter.hooks.install(PLACE, [...COMMAND, name])) {
        const after = plan.apply(before);
        expect(after).toContain("lazarus.js");
        expect(plan.apply(after)).toBe(after);
        expect(plan.remove(after)).toBe(before);
        expect(() => plan.apply("{ not a config")).toThrow();
      }
    });
  });

  test.each(cases.prints)("prints %s: %s", (meaning, line) => {
    const matches = (patterns: readonly string[] = []) =>
      patterns.some((each) => new RegExp(each, "i").test(line));
    const found = PATTERN_CLASSES.filter((each) => matches(adapter.patterns[each]));
    expect(found).toEqual(meaning === null || meaning === "unknown-session" ? [] : [meaning]);
    expect(matches(adapter.unknownSession.patterns)).toBe(meaning === "unknown-session");
  });

  test("the recordings contain no machine names", () => {
    for (const golden of existsSync(join(GOLDEN, name)) ? readdirSync(join(GOLDEN, name)) : [])
      for (const { text } of readGolden(name, golden))
        expect(/\/tmp\/|\/root\b|\/work\/|127\.0\.0\.1:\d/.exec(text)?.[0]).toBeUndefined();
  });
});
